# digits.i: which digit is on each of n images of 8 x 8 pixels?
#
# Letters: b walks the batch, i the inputs of a layer, o its outputs, c the ten classes.
# Ink runs from 0 to 1; the result is one probability per class, and each row sums to 1.

# x and w meet in every (b, o, i); the sum over i leaves a matrix product; then the bias
linear = bi*oi~boi >> +boi~bo >> bo+o~bo
relu = >bo~bo

# less the row's maximum, so that e^x cannot overflow; then each row divided by its sum
softmax = (I & >bc~b) >> bc-b~bc >> ^bc~bc >> (I & +bc~b) >> bc/b~bc

digits(x[n,64], w1[48,64], b1[48], w2[10,48], b2[10]) = linear >> relu >> linear >> softmax
