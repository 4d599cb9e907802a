# i run samples/21_rows.i '[[[[0]], [[1]]]]' '[[[[0]], [[1]]]]' '[[[[2]], [[4]]]]'
#
# einsum("..."): a specification names the axes of each operand, in rows batch|input->output, and what
# comes out; axes that are missing there are summed. `..b..` stands for any number of axes: here for
# those of the batch, however many softmax says there are. In `..b..m|hd` the positions m come last of
# the batch axes, and heads h and features d are output axes.
#
# in q = [[[[0]], [[1]]]]
# in k = [[[[0]], [[1]]]]
# in v = [[[[2]], [[4]]]]
# out = [[[[3]], [[3.4621172]]]]

attention(q, k, v) = scores >> softmax >> mix

scores = einsum("..b..m|hd; ..b..n|hd => ..b..|hmn")
softmax = (I & >bhij~bhi) >> bhij-bhi~bhij >> ^bhij~bhij >> (I & +bhij~bhi) >> bhij/bhi~bhij
mix = einsum("..b..|hmn; ..b..n|hd => ..b..m|hd")
