# The sum of all elements.

full_sum(x[m,n]) = +ij~.
