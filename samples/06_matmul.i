# i run samples/06_matmul.i '[[1, 2], [3, 4]]' '[[5, 6], [7, 8]]'
#
# `>>` hands the output of the left to the right. First every product of x[i,k] and y[k,j], then their
# sum over k: a matrix product. The compiler runs both in one loop nest, and the products in between
# are never stored: `i explain samples/06_matmul.i` shows the loops.
#
# in x = [[1, 2], [3, 4]]
# in y = [[5, 6], [7, 8]]
# out = [[19, 22], [43, 50]]

matmul(x[m,k], y[k,n]) = ik*kj~ijk >> +ijk~ij
