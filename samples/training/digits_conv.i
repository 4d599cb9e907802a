# Handwritten digits by two convolutions: x has 64 pixels, row by row; t is 1 at the digit that is meant, else 0.
use nn, optim

# what a component gives has output axes alone
image = einx.id("b (h w) -> b h w 1", h=8)
op rows(x) = x ++ "b, h, w, i => b|h, w, i"

op part(x; out) = max_pool2(?/conv3(x; out))
op digits(x) = linear(part(part(rows(image(x)); 12); 24); 10)

cd step(x, t; lr = 0.004) {
  loss = cross_entropy(digits(x), t)
  backprop(loss)
  for p in params(loss) { adam(p; lr) }
  return loss
}
