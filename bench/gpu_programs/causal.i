# Causal attention for each head h: row i of q looks at the rows of k up to i.

causal(q[h,n,64], k[h,n,64], v[h,n,d]) = scores >> softmax >> mix

scores = hid*hjd~hijd >> +hijd~hij >> (I | 0.125) >> hij*.~hij
softmax = (I & >hij[j<=i]~hi) >> hij-hi~hij >> ^hij~hij >> (I & +hij[j<=i]~hi) >> hij[j<=i]/hi~hij
mix = hij*hjd~hijd >> +hijd~hid
