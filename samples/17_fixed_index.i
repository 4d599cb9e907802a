# i run samples/17_fixed_index.i '[[1, 2, 3], [4, 5, 6]]'
#
# A number in place of a letter is one position of that dimension, counted from 0.
# `i0~i` is column 0; here it is taken off every column.
#
# in x = [[1, 2, 3], [4, 5, 6]]
# out = [[0, 1, 2], [0, 1, 2]]

since_start(x[m,n]) = (I & i0~i) >> ij-i~ij
