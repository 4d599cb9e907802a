# Handwritten digits by two convolutions: x has 64 pixels, row by row; t is 1 at the digit that is meant, else 0.

# what components give has output axes alone: the first is the batch
image = einx.id("b (h w) -> b h w 1", h = 8)
pooled(x[b,h,w,c]) = >b(2h+u:2)(2w+v:2)c~bhwc
op rows(x) = x ++ "b, h, w, i => b|h, w, i"

op convolve(x[b|h, w, i], k[3, 3, i -> o]) = x *+ "...|y=+u, x=+v, i; u, v, i -> o => ...|y, x, o" k
op conv(x; out) = rows(pooled(?/(convolve(x, "k") + "b" out)))
op digits(x)    = "w" * conv(conv(rows(image(x)); 12); 24) + "c" 10

op cross_entropy(z, t) {
  below = z - einmax("...|c => ...|0", z)
  whole = log(exp(below) ++ "...|c => ...|0")
  (whole - below) *. t ++ "...|... => 0"
}

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
