"""Optimisers, as text of the language."""

TEXT = """\
# Optimisers: each updates one parameter from its gradient; state lasts from run to run, for each parameter.
#
#     for p in params(loss) { adam(p; lr) }

# Nesterov, Sutskever et al. (2013) as others write it: the step goes on by the velocity
cd sgd(p; lr, momentum = 0.0, nesterov = false, decay = 0.0) {
  "delta" =: p.grad + decay *. p
  if momentum > 0 {
    "velocity" =: momentum *. velocity + delta
    if nesterov > 0 { delta =+ momentum *. velocity } else { delta =: velocity }
  }
  p =- lr *. delta
}

# Kingma, Ba (2015); c1 and c2 are 1 - b^n after n steps; decay is added to the gradient
cd adam(p; lr, b1 = 0.9, b2 = 0.999, eps = 0.00000001, decay = 0.0) {
  "delta" =: p.grad + decay *. p
  "c1" =: b1 *. c1 + (1 - b1)
  "c2" =: b2 *. c2 + (1 - b2)
  "m" =: b1 *. m + (1 - b1) *. delta
  "v" =: b2 *. v + (1 - b2) *. (delta *. delta)
  p =- lr *. (m /. c1) /. (sqrt(v /. c2) + eps)
}

# Loshchilov, Hutter (2019): decay takes a part of the parameter itself
cd adamw(p; lr, b1 = 0.9, b2 = 0.999, eps = 0.00000001, decay = 0.01) {
  p =- lr *. decay *. p
  adam(p; lr, b1 = b1, b2 = b2, eps = eps)
}

# all gradients together have a norm of most at most
cd clip(loss; most) {
  "squares" =: 0
  for p in params(loss) { squares =+ p.grad * p.grad ~logic:"...|...->...; ...|...->... => 0" }
  "factor" =: min(1, most /. (sqrt(squares) + 0.000001))
  for p in params(loss) { p.grad =* factor }
}

# of the step number n: the rate rises for warm steps, then falls to 0 at the last one as a cosine does
op cosine_rate(n; lr, warm, last) {
  done = sat01((n - warm) /. (last - warm))
  lr *. min(n /. warm, 0.5 *. (1 + cos(3.14159265 *. done)))
}
# the same, and falls along a line
op linear_rate(n; lr, warm, last) = lr *. min(n /. warm, sat01((last - n) /. (last - warm)))
"""
