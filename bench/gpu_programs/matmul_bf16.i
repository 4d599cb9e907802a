# The product of two matrices on tensor cores, of factors rounded to bf16: blocks of 128 by 64, 32 by 32 for each of
# eight warps, and two copies of each operand in turn, of 32 terms of 16 bits.

terms = ik*kj~ijk | i:4:32,j:2:32,k:4:32 | i j k k' 0 1 k'' i' j' i'' j'' | 0:s2,1:s2
sums = +ijk~ij | i:4:32,j:2:32,k:4:32 | i j k k' k'' i' j' i'' j'' 0 | i:p,j:p,i':t,j':t,i'':m16,j'':m16,k'':m16
matmul_bf16(a[m,k], b[k,n]) = terms >> sums
