# Handwritten digits from scratch: a perceptron with one hidden layer, trained with Adam.
#
# x has 64 pixels from 0 to 1, t is 1 at the digit that is meant and 0 elsewhere.
use nn, optim

op digits(x) = mlp(x; [128], 10)

cd step(x, t; lr = 0.001) {
  loss = cross_entropy(digits(x), t)
  backprop(loss)
  for p in params(loss) { adam(p; lr) }
  return loss
}
