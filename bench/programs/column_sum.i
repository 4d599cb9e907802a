# The sum of each column.

column_sum(x[m,n]) = +ij~j
