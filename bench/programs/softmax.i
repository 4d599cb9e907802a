# e^x of each row over its sum; the largest of the row is taken off first, so that nothing overflows.

softmax(x[m,n]) = (I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij
