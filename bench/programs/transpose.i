# Rows and columns exchanged.

transpose(x[m,n]) = ij~ji
