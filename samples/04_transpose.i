# i run samples/04_transpose.i '[[1, 2, 3], [4, 5, 6]]'
#
# The output lists its letters in any order: `ij~ji` exchanges rows and columns.
# Without an operator an expression copies (it is short for `+`, which changes nothing here).
#
# in x = [[1, 2, 3], [4, 5, 6]]
# out = [[1, 4], [2, 5], [3, 6]]

transposed(x[m,n]) = ij~ji
