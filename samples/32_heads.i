# i explain samples/32_heads.i
#
# Attention with two heads in einx notation: `(h d)` is one dimension of the arrays, `[ ]` marks what an operation sees.
# in q = [[1, 0, 0, 2]]
# in k = [[1, 0, 1, 0], [0, 1, 0, 1]]
# in v = [[1, 2, 3, 4], [5, 6, 7, 8]]
# out = [[2.075766, 3.075766, 6.523188, 7.523188]]

heads(q[s,e], k[t,e], v[t,e]) = {
  scores = einx.dot("s (h [d]), t (h [d]) -> s h t", h=2)(q, k)
  mix(einx.softmax("s h [t]")(scores), v)
}
mix = einx.dot("s h [t], [t] (h d) -> s (h d)")
