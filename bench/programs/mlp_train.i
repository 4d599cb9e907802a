# One step of gradient descent for the network of mlp.i, under the mean cross entropy of a softmax, with the gradients
# written out. A label is the number of a class, beside which stand the numbers of all classes; rate is the learning
# rate over the number of rows. The values stand in a row, and a comment names those that a line leaves.

mlp_train(x[n,i], w1[i,j], b1[j], w2[j,k], b2[k], w3[k,o], b3[o], label: i32[n], class: i32[o], rate[]) = forward >> backward

forward = (relu_layer | I4 | I3)  # x w1 b1 h1, w2 b2, w3 b3, label class rate
    >> (I3 | relu_layer | I4 | I)  # x w1 b1, h1 w2 b2 h2, w3 b3, label class rate
    >> (I3 | I3 | I3 & layer | I3)  # x w1 b1, h1 w2 b2, h2 w3 b3 z, label class rate

backward = (I3 | I3 | I3 | error | I)  # x w1 b1, h1 w2 b2, h2 w3 b3 d3 rate
    >> (I3 | I3 | back)  # x w1 b1, h1 w2 b2 d2 rate, w3 b3
    >> (I3 | back | I | I)  # x w1 b1 d1 rate, w2 b2, w3 b3
    >> (last_back | I4)  # w1 b1, w2 b2, w3 b3

# of values, weights and biases: the next values; with those given and after relu
layer = bi*io~bio >> +bio~bo >> bo+o~bo
relu_layer = I3 & (layer >> >bo~bo)

# of the last values, labels and classes: the derivative of the cross entropy
error = (softmax | b==o~bo >> f32) >> bo-bo~bo
softmax = (I & >bo~b) >> bo-b~bo >> ^bo~bo >> (I & +bo~b) >> bo/b~bo

# of values, weights, biases, the derivative by the next values, and rate: the derivative by the values given, rate,
# and the new weights and biases; the first layer needs no derivative by its values
back = (I | I | rotate)  # h w d rate b
    >> (I | I | (I | I) & bias)  # h w d rate b'
    >> (I3 | (I & I) | I)  # h w d rate rate b'
    >> (by_values & weights | I | I)  # d' w' rate b'
    >> (I | ~(I | I) | I)  # d' rate w' b'
last_back = (I | I | rotate) >> (I | I | (I | I) & bias) >> (weights | I)

by_values = (I | (io*bo~bio >> +bio~bi)) >> (>>bi~bi | I) >> bi*bi~bi
weights = (~(I | I) | I | I) >> (I | (bi*bo~bio >> +bio~io) | I) >> (I | io*.~io) >> io-io~io
bias = (+bo~o | I | I) >> (o*.~o | I) >> ~(I | I) >> o-o~o

rotate = I3 >> I
I3 = I | I | I
I4 = I3 | I
