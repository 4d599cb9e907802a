# The product of two matrices under a written schedule: blocks of 128 by 128, 8 by 8 elements for each of 256 threads,
# and two copies of each operand in turn. Registers hold all of it where extents are known.

terms = ik*kj~ijk | i:2:16:4,j:2:16:4,k:8:16 | i j k k' 0 1 k'' i' i'' j' j'' i''' j''' | 0:s2,1:s2
sums = +ijk~ij | i:2:16:4,j:2:16:4,k:8:16 | i j k k' k'' i' i'' j' j'' i''' j''' 0 | i:p,j:p,i':u,i'':t,j':u,j'':t,i''':u,j''':u
matmul_written(a[m,k], b[k,n]) = terms >> sums
