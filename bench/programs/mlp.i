# Three layers of weights, the first two with relu after them.

mlp(x[n,i], w1[i,j], b1[j], w2[j,k], b2[k], w3[k,o], b3[o]) = layer >> relu >> layer >> relu >> layer

layer = bi*io~bio >> +bio~bo >> bo+o~bo
relu = >bo~bo
