# i run samples/27_histogram.i '[3, 0, 3, 1]' '[0.5, 1, 2, 4]'
#
# An axis of the output is looked up: each element is added to the place that its bin names, in any order. How many
# elements a bin has is the sum of ones.
#
# in bins = i64:[3, 0, 3, 1]
# in weights = [0.5, 1, 2, 4]
# out = [1, 1, 0, 2]
# out = [1, 4, 0, 2.5]

histogram(bins: i64[n], weights[n]) = counts & i@i~(v:4)

counts = (I | 1) >> i@.~(v:4)
