# i run samples/02_broadcast.i '[[1, 2, 3], [4, 5, 6]]' '[10, 20, 30]'
#
# An input without a letter of the output is the same all along that axis: the second input has no i,
# so every row of the first gets the same three numbers. Only letters say which dimensions meet;
# an extent of 1 is never stretched.
#
# in x = [[1, 2, 3], [4, 5, 6]]
# in bias = [10, 20, 30]
# out = [[11, 22, 33], [14, 25, 36]]

biased(x[m,n], bias[n]) = ij+j~ij
