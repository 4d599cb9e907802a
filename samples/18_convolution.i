# i run samples/18_convolution.i '[1, 2, 4, 8, 16]' '[1, 10, 100]'
#
# `(i+k-1)` is an affine index: position i of the output meets positions i - 1, i and i + 1 of x as k
# runs along the weights. An offset of -1 pads both ends by one; a read outside is 0. So there are as
# many outputs as inputs: without the -1 there would be the 3 places where the weights fit.
#
# in x = [1, 2, 4, 8, 16]
# in w = [1, 10, 100]
# out = [210, 421, 842, 1684, 168]

smooth(x[n], w[k]) = (i+k-1)*k~ik >> +ik~i
