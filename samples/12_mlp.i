# i run samples/12_mlp.i '[[1, 2]]' '[[1, 1], [1, -1]]' '[0, 0.5]' '[[2, 1]]' '[1]'
#
# Inputs that a chain leaves open become inputs of the whole, in order: `linear` takes x, weights and a
# bias, and `linear >> relu >> linear` takes x and then two more for each layer.
#
# in x = [[1, 2]]
# in w1 = [[1, 1], [1, -1]]
# in b1 = [0, 0.5]
# in w2 = [[2, 1]]
# in b2 = [1]
# out = [[7]]

mlp(x[n,i], w1[h,i], b1[h], w2[o,h], b2[o]) = linear >> relu >> linear

linear = bi*oi~boi >> +boi~bo >> bo+o~bo
relu = >bo~bo
