# One step of gradient descent for a classifier of images: x is batch, rows, columns and channels, t is 1 at the class.
use nn, optim

op net(x; first, second) {
  y = max_pool2(?/conv3(x; first, label = "one"))
  linear(max_pool2(?/conv3(y; second, label = "two")); 10, label = "out")
}

cd step(x[b|h, w, i], t; first, second, lr = 0.01) {
  loss = cross_entropy(net(x; first, second), t)
  backprop(loss)
  for p in params(loss) { sgd(p; lr) }
  return loss
}
