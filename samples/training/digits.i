# Handwritten digits from scratch: a perceptron with one hidden layer, trained with Adam.
#
# x has 64 pixels from 0 to 1, t is 1 at the digit that is meant and 0 elsewhere.

op layer(x; out) = "w" * x + "b" out
op digits(x)     = layer(?/ layer(x; 64); 10)

# -log of the share of the right class, of a softmax whose largest score is 0
op cross_entropy(z, t) {
  below = z - einmax("...|c => ...|0", z)
  whole = log(exp(below) ++ "...|c => ...|0")
  (whole - below) *. t ++ "...|... => 0"
}

# Kingma, Ba: Adam (2015); c1 and c2 are 1 - b^n after n steps
cd adam(p; lr, b1 = 0.9, b2 = 0.999) {
  "c1" =: b1 *. c1 + (1 - b1)
  "c2" =: b2 *. c2 + (1 - b2)
  "m" =: b1 *. m + (1 - b1) *. p.grad
  "v" =: b2 *. v + (1 - b2) *. (p.grad *. p.grad)
  p =- lr *. (m /. c1) /. (sqrt(v /. c2) + 0.00000001)
}

cd step(x, t; lr = 0.002, batch = 32) {
  loss = cross_entropy(digits(x), t) /. batch
  backprop(loss)
  for p in params(loss) { adam(p; lr) }
  return loss
}
