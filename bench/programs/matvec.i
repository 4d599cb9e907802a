# A matrix times a column: the dot product of each row with x.

matvec(a[m,k], x[k]) = ik*k~ik >> +ik~i
