# Two moons: on which of two interleaved half circles is a point? x has two coordinates, t is 1 or 0.
use nn, optim

op layer(x; out) = tanh(linear(x; out))
op moons(x) = sigmoid(linear(layer(layer(x; 16); 16); 1))

cd step(x, t; lr = 0.1) {
  y = moons(x)
  right = t *. log(y + 0.0000001) + (1 - t) *. log(1.0000001 - y)
  loss = -(right ++ "...|... => 0") /. 32
  backprop(loss)
  for p in params(loss) { sgd(p; lr, momentum = 0.9) }
  return loss
}
