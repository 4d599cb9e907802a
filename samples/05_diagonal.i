# i run samples/05_diagonal.i '[[1, 2, 3], [4, 5, 6], [7, 8, 9]]'
#
# A letter twice in one input walks both dimensions at once: `ii` is the diagonal.
# `.` is the pattern of a single number, so `+ii~.` adds the diagonal up: 1 + 5 + 9.
#
# in x = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
# out = 15

trace(x[n,n]) = +ii~.
