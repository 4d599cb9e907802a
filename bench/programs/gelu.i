# GELU in its form with tanh, x / 2 * (1 + tanh(u)) with u = sqrt(2 / pi) * (x + 0.044715 * x^3).
# Since (1 + tanh(u)) / 2 = 1 / (1 + e^(-2u)), that is x / (1 + e^(-2u)).

gelu(x[n]) = (I & gate) >> i/i~i

# 1 + e^(-2u), where -2u = x * (-1.5957691 - 0.071354816 * x * x)
gate = minus_2u >> ^i~i >> (I | 1) >> i+.~i
minus_2u = (I & (slope >> (I | -1.5957691) >> i+.~i)) >> i*i~i
slope = (I & I) >> i*i~i >> (I | -0.071354816) >> i*.~i
