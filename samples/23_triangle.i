# i run samples/23_triangle.i '[[1, 2, 3], [4, 5, 6], [7, 8, 9]]'
#
# A guard, in brackets after an input, says which elements count. The lower triangle of a matrix, 0 elsewhere,
# and the sum of each row up to the diagonal: in a reduction, what does not count is left out.
#
# in x = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
# out = [[1, 0, 0], [4, 5, 0], [7, 8, 9]]
# out = [1, 9, 24]

triangle(x[n,n]) = lower & sums

lower = ij[j<=i]~ij
sums = +ij[j<=i]~i
