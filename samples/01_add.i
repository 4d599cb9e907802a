# i run samples/01_add.i '[1, 2, 3]' '[10, 20, 30]'
#
# A letter is an axis: a loop over positions. `i+i~i` reads "for each i, add the two inputs at i";
# what stands after `~` is the output. Here every array walks the one axis i.
#
# A file holds definitions: a name, the inputs with the names of their dimensions, and a program.
#
# `i explain '+'` says what a sign means, and `i explain numpy` how programs of NumPy are written.
#
# in x = [1, 2, 3]
# in y = [10, 20, 30]
# out = [11, 22, 33]

total(x[n], y[n]) = i+i~i
