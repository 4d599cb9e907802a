# A product of two matrices for each position of z.

bmm(a[z,m,k], b[z,k,n]) = zik*zkj~zijk >> +zijk~zij
