# A convolution that is padded by 1 on all sides: with weights of 3 by 3 the image keeps its size.

conv3x3(x[n,c,h,w], weights[o,c,3,3]) = nc(y+u-1)(x+v-1)*ocuv~noyxcuv >> +noyxcuv~noyx
