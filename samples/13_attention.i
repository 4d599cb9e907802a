# i run samples/13_attention.i '[[2, 0]]' '[[1, 0], [0, 1], [9, 9]]' '[[0, 0, -inf]]' '[[1, 0], [0, 1], [5, 5]]'
#
# Which rows of v does each row of q ask for? Scores of q against k, scaled by 1 / sqrt(2); a mask that is
# added, -inf where q must not look; their softmax, the weights; the weighted sum of the rows of v.
#
# in q = [[2, 0]]
# in k = [[1, 0], [0, 1], [9, 9]]
# in mask = [[0, 0, -inf]]
# in v = [[1, 0], [0, 1], [5, 5]]
# out = [[0.80442965, 0.19557032]]

attention(q[m,2], k[n,2], mask[m,n], v[n,d]) = scores >> masked >> softmax >> mix

scores = ik*jk~ijk >> +ijk~ij >> (I | 0.70710678) >> ij*.~ij
masked = ij+ij~ij
softmax = (I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij
mix = ij*jd~ijd >> +ijd~id
