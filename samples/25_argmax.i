# i run samples/25_argmax.i '[[0.1, 0.7, 0.2], [0.5, 0.1, 0.4]]' '[1, 2]'
#
# Positions are values. Which class has the highest score in each row: `>@ij~i`. One-hot rows
# of the labels compare each label with every position along c.
#
# in scores = [[0.1, 0.7, 0.2], [0.5, 0.1, 0.4]]
# in labels = i32:[1, 2]
# out = i64:[1, 0]
# out = i32:[[0, 1, 0], [0, 0, 1]]

classify(scores[n,3], labels: i32[n]) = >@ij~i | one_hot

one_hot = i==@(c:3)~ic >> i32
