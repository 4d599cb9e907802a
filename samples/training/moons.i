# Two moons: on which of two interleaved half circles is a point? x has two coordinates, t is 1 or 0.

op layer(x; out) = tanh("w" * x + "b" out)
op moons(x)      = sigmoid("v" * layer(layer(x; 16); 16) + "c" 1)

cd sgd(p; lr, momentum = 0.9) {
  "velocity" =: momentum *. velocity + p.grad
  p =- lr *. velocity
}

cd step(x, t; lr = 0.1, batch = 32) {
  y = moons(x)
  right = t *. log(y + 0.0000001) + (1 - t) *. log(1.0000001 - y)
  loss = -(right ++ "...|... => 0") /. batch
  backprop(loss)
  for p in params(loss) { sgd(p; lr) }
  return loss
}
