# Attention for each head h: the softmax of q times k, scaled by 1 / sqrt(64), weighs the rows of v.

attention(q[h,m,64], k[h,n,64], v[h,n,d]) = scores >> softmax >> mix

scores = hid*hjd~hijd >> +hijd~hij >> (I | 0.125) >> hij*.~hij
softmax = (I & >hij~hi) >> hij-hi~hij >> ^hij~hij >> (I & +hij~hi) >> hij/hi~hij
mix = hij*hjd~hijd >> +hijd~hid
