# The sum of each row.

row_sum(x[m,n]) = +ij~i
