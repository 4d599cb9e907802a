# i run samples/07_normalize_rows.i '[[1, 3], [1, 1], [2, 6]]'
#
# `f & g` gives the same input to both sides and has both outputs; `I` is the input itself.
# So `(I & +ij~i)` is the matrix and its row sums, and the division takes these two.
#
# in x = [[1, 3], [1, 1], [2, 6]]
# out = [[0.25, 0.75], [0.5, 0.5], [0.25, 0.75]]

shares(x[m,n]) = (I & +ij~i) >> ij/i~ij
