# relu(a * b + c), element by element.

fma_relu(a[n], b[n], c[n]) = i*i~i >> i+i~i >> >i~i
