# i check samples/29_transformer.i
#
# A transformer block, over names: an application gives a component its inputs, a block names what it gives.
# in x = [[1, 2], [3, -1]]
# in wq = [[1, 0], [1, 1]]
# in wk = [[0, 1], [1, 1]]
# in wv = [[1, 1], [0, 1]]
# in wo = [[1, 0], [0, 2]]
# in up = [[1, 0, -1], [0, 1, 1]]
# in down = [[1, 0], [0, 1], [1, 1]]
# out = [[3.018461, 8.037357], [5.091769, 2.848496]]

block(x[n,2], wq[2,2], wk[2,2], wv[2,2], wo[2,2], up[2,f], down[f,2]) = {
  h = norm(x)
  a = softmax(scores(times(h, wq), times(h, wk)))
  y = add(x, times(times(a, times(h, wv)), wo))
  add(y, times(relu(times(norm(y), up)), down))
}
norm = (I & size) >> ij/i~ij
size = (I | 2) >> ij^.~ij >> +ij~i >> (I | 0.5) >> i*.~i >> (I | 0.5) >> i^.~i
times = ik*kj~ijk >> +ijk~ij
scores = ik*jk~ijk >> +ijk~ij >> (I | 0.70710678) >> ij*.~ij
softmax = (I & >ij~i) >> ij-i~ij >> ^ij~ij >> (I & +ij~i) >> ij/i~ij
relu = >ij~ij
add = ij+ij~ij
