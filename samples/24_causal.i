# i check samples/24_causal.i
#
# Causal attention: row i of q looks at the rows of k up to i. No mask is read: the maximum and the sum leave out
# the columns to the right, and the weights are 0 there.
#
# in q = [[2, 0], [0, 1], [1, 1]]
# in k = [[1, 0], [0, 1], [9, 9]]
# in v = [[1, 0], [0, 1], [5, 5]]
# out = [[1, 0], [0.26894142, 0.73105858], [5, 5]]

attention(q[n,2], k[n,2], v[n,d]) = scores >> softmax >> mix

scores = ik*jk~ijk >> +ijk~ij
softmax = (I & >ij[j<=i]~i) >> ij-i~ij >> ^ij~ij >> (I & +ij[j<=i]~i) >> ij[j<=i]/i~ij
mix = ij*jd~ijd >> +ijd~id
