# i run samples/08_constants.i '[-40, 0, 37, 100]'
#
# A number is a component without inputs. `f | g` puts two components side by side, so `(I | 1.8)` is
# the input and the number 1.8; `i*.~i` multiplies every i by the one number.
#
# in celsius = [-40, 0, 37, 100]
# out = [-40, 32, 98.6, 212]

fahrenheit(celsius[n]) = (I | 1.8) >> i*.~i >> (I | 32) >> i+.~i
