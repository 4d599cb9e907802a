# The product of two matrices under a written schedule: blocks of 128 by 64, one copy of each operand at a time.

terms = ik*kj~ijk | i:2:16:4,j:16:4,k:8:16 | i j k k' 0 1 k'' i' i'' j' i''' j'' | 0:s,1:s
sums = +ijk~ij | i:2:16:4,j:16:4,k:8:16 | i j k k' k'' i' i'' j' i''' j'' 0 | i:p,j:p,i':u,i'':t,j':t,i''':u,j'':u
matmul_written(a[m,k], b[k,n]) = terms >> sums
