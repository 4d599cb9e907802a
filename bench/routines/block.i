# One step of gradient descent for a transformer block: x is batch, position and width, and t what is wanted.
use nn, optim

op block(x[b, t|d]; size, heads, hidden) {
  y = x + attention(layer_norm(x; label = "before"); heads, width = size /. heads, out = size)
  y + linear(?/linear(layer_norm(y; label = "between"); hidden, label = "up"); size, label = "down")
}
op error(y, t) {
  d = y - t
  d *. d ++ "...|... => 0"
}

cd causal(x, t; size, heads, hidden, lr = 0.000001) {
  loss = error(transformer_block(x; size, heads, hidden, label = "block"), t)
  backprop(loss)
  for p in params(loss) { sgd(p; lr) }
  return loss
}
cd full(x, t; size, heads, hidden, lr = 0.000001) {
  loss = error(block(x; size, heads, hidden), t)
  backprop(loss)
  for p in params(loss) { sgd(p; lr) }
  return loss
}
