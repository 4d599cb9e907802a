# i run samples/19_pooling.i '[[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8], [9, 7, 9, 3]]'
#
# A coefficient is a stride, and `:2` writes the extent of an axis that nothing else fixes: the largest
# number of each 2 by 2 block. A last row or column that fills no block is left out.
#
# in x = [[3, 1, 4, 1], [5, 9, 2, 6], [5, 3, 5, 8], [9, 7, 9, 3]]
# out = [[9, 6], [9, 9]]

pooled(x[h,w]) = >(2y+u:2)(2x+v:2)~yx
