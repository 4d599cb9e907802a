# i run samples/14_multi_head.i '[[[0], [1]], [[1], [0]]]' '[[[0], [0]], [[1], [1]]]' '[[[1], [2]], [[3], [6]]]'
#
# A further letter makes everything happen once for each of its positions: with h, for heads, in every
# pattern, attention runs on each head by itself, and heads stay the middle dimension.
#
# in q = [[[0], [1]], [[1], [0]]]
# in k = [[[0], [0]], [[1], [1]]]
# in v = [[[1], [2]], [[3], [6]]]
# out = [[[2], [4.9242343]], [[2.4621172], [4]]]

multi_head(q[m,h,d], k[n,h,d], v[n,h,d]) = scores >> softmax >> mix

scores = ihd*jhd~hijd >> +hijd~hij
softmax = (I & >hij~hi) >> hij-hi~hij >> ^hij~hij >> (I & +hij~hi) >> hij/hi~hij
mix = hij*jhd~hijd >> +hijd~ihd
