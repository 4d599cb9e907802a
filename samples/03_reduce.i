# i run samples/03_reduce.i '[[1, 2, 3], [4, 5, 6]]'
#
# An operator before a single input, and a letter that the output lacks: that axis is reduced.
# `+ij~i` sums over j, so each row gives one number. `*`, `>` (largest), `<` (smallest), `&&`, `||` and
# `^^` reduce as well.
#
# in x = [[1, 2, 3], [4, 5, 6]]
# out = [6, 15]

row_sums(x[m,n]) = +ij~i
