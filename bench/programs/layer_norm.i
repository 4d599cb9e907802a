# Rows of 1024 with mean 0 and variance 1, then scaled and shifted.

layer_norm(x[m,1024], scale[1024], shift[1024]) = centered >> standard >> ij*j~ij >> ij+j~ij

mean = +ij~i >> (I | 0.0009765625) >> i*.~i
centered = (I & mean) >> ij-i~ij
square = (I & I) >> ij*ij~ij
root = (I | 1e-5) >> i+.~i >> (I | 0.5) >> i^.~i
standard = (I & (square >> mean >> root)) >> ij/i~ij
