# i run samples/11_layer_norm.i '[[1, 2, 3, 4], [0, 0, 8, 8]]' '[1, 1, 1, 2]' '[0, 0, 0, 1]'
#
# A number among the dimensions fixes an extent when the program is compiled; a name leaves it to each
# call, and one name is one extent. Here a row has 4 numbers, so its mean is the sum times 0.25.
#
# in x = [[1, 2, 3, 4], [0, 0, 8, 8]]
# in scale = [1, 1, 1, 2]
# in shift = [0, 0, 0, 1]
# out = [[-1.3416355, -0.4472118, 0.4472118, 3.683271], [-0.99999969, -0.99999969, 0.99999969, 2.9999994]]

layer_norm(x[m,4], scale[4], shift[4]) = centered >> standard >> ij*j~ij >> ij+j~ij

mean = +ij~i >> (I | 0.25) >> i*.~i
centered = (I & mean) >> ij-i~ij
square = (I | 2) >> ij^.~ij
root = (I | 1e-5) >> i+.~i >> (I | 0.5) >> i^.~i
standard = (I & (square >> mean >> root)) >> ij/i~ij
