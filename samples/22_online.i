# i explain samples/22_online.i --shape 64x2,96x2,96x8
#
# FlashAttention, by schedule alone. Softmax needs the maximum and the sum of a whole row, but here both are
# staged inside the loop n over tiles of columns, where they have seen a part of it. They run: when a maximum
# grows, the sum and the output so far are scaled, and the output is divided by the sum once, in the end.
# One kernel; no score is kept longer than its tile. What cannot be made right so is refused (E0323).
#
# in q = [[2, 0], [0, 1]]
# in k = [[1, 0], [0, 1], [0, -1]]
# in v = [[1, 0], [0, 1], [5, 5]]
# out = [[1.319520936757602, 0.6390418735152044], [0.6948813369067, 1.115393821626724]]

scores = md*nd~mnd | m:16,n:16 | m n m' n' d >> +mnd~mn | m:16,n:16 | m n m' n' d 0
shift = (I & >mn~m | m:16,n:16 | m n 0 m' n') >> mn-m~mn | m:16,n:16 | m n 0 1 m' n'
exp = ^mn~mn | m:16,n:16 | m n 0 m' n'
norm = (I & +mn~m | m:16,n:16 | m n 0 m' n') >> mn/m~mn | m:16,n:16 | m n 0 1 m' n'
mix = mn*nd~mdn | m:16,n:16 | m n 0 m' d n' >> +mdn~md | m:16,n:16 | m n m' d n' 0

attention(q[m,2], k[n,2], v[n,d]) = scores >> shift >> exp >> norm >> mix
