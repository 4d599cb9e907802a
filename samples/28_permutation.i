# i run samples/28_permutation.i '[2, 0, 3, 1]' '[10, 20, 30, 40]'
#
# Positions written to places are the inverse of a permutation: where each element went. Looked up in it, an array
# goes back to the order that it had.
#
# in p = i64:[2, 0, 3, 1]
# in x = [10, 20, 30, 40]
# out = [20, 40, 10, 30]

restored(p: i64[n], x[n]) = (inverse | I) >> i@v~i

inverse = i@@i~(v:4)
