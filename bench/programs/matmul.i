# The product of two matrices. Also a row times a matrix, where m is 1.

matmul(a[m,k], b[k,n]) = ik*kj~ijk >> +ijk~ij
