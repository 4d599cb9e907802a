# i run samples/09_softmax.i '[[0, 0], [0, 1], [1000, 1001]]'
#
# Definitions name the parts of a program, in any order. Those that nothing else uses are what a file
# exports: here softmax. The largest of a row is taken off first, so that e^x cannot overflow; the
# last row of the example would otherwise be inf / inf.
#
# in x = [[0, 0], [0, 1], [1000, 1001]]
# out = [[0.5, 0.5], [0.26894143, 0.7310586], [0.26894143, 0.7310586]]

softmax(x[m,n]) = shift >> exp >> norm

shift = (I & >ij~i) >> ij-i~ij
exp = ^ij~ij
norm = (I & +ij~i) >> ij/i~ij
