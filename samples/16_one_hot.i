# i run samples/16_one_hot.i '[[1, 5, 2], [7, 0, 7]]'
#
# Comparisons and logic give bool. Comparing each row with its largest number marks where that number
# stands, which is argmax as a one-hot row; equal numbers are marked together.
#
# in x = [[1, 5, 2], [7, 0, 7]]
# out = [[false, true, false], [true, false, true]]

argmax(x[m,n]) = (I & >ij~i) >> ij==i~ij
