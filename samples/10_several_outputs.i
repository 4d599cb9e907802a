# i run samples/10_several_outputs.i '[[3, 1, 2], [4, 9, 7]]'
#
# A component may have several outputs: `&` gives those of its left side, then those of its right.
# `~f` exchanges the first two, so this program gives the largest of each row, then the smallest.
#
# in x = [[3, 1, 2], [4, 9, 7]]
# out 0 = [3, 9]
# out 1 = [1, 4]

extremes(x[m,n]) = ~(<ij~i & >ij~i)
