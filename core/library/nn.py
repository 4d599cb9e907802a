"""Layers and losses, as text of the language."""

TEXT = """\
# Layers and losses. What stands before `|` is the batch; a layer works on output axes, and makes its own.

op linear(x; out) = "w" * x + "b" out

# relu between linear layers of so many units, and a last one
op mlp(x; hids, out) = linear(repeat(x; h in hids) { ?/linear(x; h) }; out)

# -- convolution: an image has rows, columns and channels --

op convolve(x[b|h, w, i], k[u, v, i->o]) = x *+ "...|y=+u, x=+v, i; u, v, i -> o => ...|y, x, o" k

# of odd size and stride 1, padded to keep rows and columns
op conv3(x[b|h, w, i]; out) = convolve(x, kernel3("k")) + "b" out
op conv5(x[b|h, w, i]; out) = convolve(x, kernel5("k")) + "b" out
op kernel3(k[3, 3, i->o]) = k
op kernel5(k[5, 5, i->o]) = k

# the largest of 2 x 2, and the mean of all
max_pool2_of(x[b,h,w,c]) = >b(2h+u:2)(2w+v:2)c~bhwc
op max_pool2(x[b|h, w, i]) = max_pool2_of(x) ++ "b, h, w, i => b|h, w, i"
op mean_pool(x[b|h, w, i]) = (x ++ "b|h, w, i => b|i") /. (dim(x, "h") *. dim(x, "w"))

# -- normalisation --

op softmax(x[...|c]) {
  e = exp(x - einmax("...|c => ...|0", x))
  e /. (e ++ "...|c => ...|0")
}

# each row of the output axis n: mean 0, variance 1, then a scale and a shift of its own
op layer_norm(x[...|n]; eps = 0.00001) {
  d = x - (x ++ "...|n => ...|0") /. dim(x, "n")
  v = (d *. d ++ "...|n => ...|0") /. dim(x, "n")
  d /. sqrt(v + eps) *. "scale" 1.0 + "shift" 0.0
}

# the same along the batch; what it keeps from run to run, by shares of keep, is what it goes by when training is 0
op batch_norm(x[b|n]; training = 1, keep = 0.9, eps = 0.00001) {
  m = (x ++ "b|n => n") /. dim(x, "b")
  v = ((x - m) *. (x - m) ++ "b|n => n") /. dim(x, "b")
  step = training *. (1 - keep)
  "mean" =: mean + step *. (m - mean)
  "variance" 1.0 =: variance + step *. (v *. dim(x, "b") /. max(dim(x, "b") - 1, 1) - variance)
  d = x - (training *. m + (1 - training) *. mean)
  d /. sqrt(training *. v + (1 - training) *. variance + eps) *. "scale" 1.0 + "shift" 0.0
}
# each channel c of images
op batch_norm2d(x[b|h, w, c]; training = 1, keep = 0.9, eps = 0.00001) {
  count = dim(x, "b") *. dim(x, "h") *. dim(x, "w")
  m = (x ++ "b|h, w, c => c") /. count
  v = ((x - m) *. (x - m) ++ "b|h, w, c => c") /. count
  step = training *. (1 - keep)
  "mean" =: mean + step *. (m - mean)
  "variance" 1.0 =: variance + step *. (v *. count /. max(count - 1, 1) - variance)
  d = x - (training *. m + (1 - training) *. one_row(mean))
  d /. sqrt(training *. v + (1 - training) *. one_row(variance) + eps) *. one_row("scale" 1.0) + one_row("shift" 0.0)
}

# -- dropout --

# a share rate of x is 0, by the number of the step: `"n" =: n + 1` in a routine, and `dropout(x, n; 0.1)`;
# what drops apart has keys apart.
# The parameter is a random number of 24 bits by the seed of the session; nothing flows back to it.
op dropout(x, step; rate, key = 0) {
  drawn = f64("seed" 1 ++ "i => |") *. 8388608 + 8388608
  kept = uniform26(f64(x < x) + range(), f64(step), drawn; key) >= rate
  x *. kept /. (1 - rate)
}
# a number from 0 to below 1 for each x, n, s and key, integers below 2^26; each step permutes these
op uniform26(x: f64, n: f64, s: f64; key) = mixed26(rest26(x + step26(n, s; key))) /. 67108864
op step26(n: f64, s: f64; key) = mixed26(rest26(s + mixed26(rest26(n + 65537 *. key))))
op mixed26(x) = halves26(halves26(halves26(x + 40503)))
op halves26(x) {
  h = rest26(x *. (x +. x + 1))
  high = f64(i64(h /. 8192))
  (h -. 8192 *. high) *. 8192 + high
}
op rest26(x) = x -. 67108864 *. f64(i64(x /. 67108864))

# -- losses: means over one batch axis --

# t is 1 at the right class, else 0
op cross_entropy(z[b|c], t[b|c]) = cross_entropy_sum(z, t) /. dim(z, "b")
op cross_entropy_sum(z[...|c], t[...|c]) {
  below = z - einmax("...|c => ...|0", z)
  whole = log(exp(below) ++ "...|c => ...|0")
  where(t = 0, 0, (whole - below) *. t) ++ "...|... => 0"  # 0 also where z is -inf and t is 0
}
# t is the number of the right class; a number of no class is an index out of range
op cross_entropy_at(z[b|c], t: i64[b|]) = cross_entropy(z, right_class(t))
op cross_entropy_sum_at(z[...|c], t: i64[...|]) = cross_entropy_sum(z, right_class(t))
op right_class(t: i64[...|]) {
  classes = one_row(range())
  f32((class_at(classes, t) ++ "..b.. => ..b..|") = classes)
}
class_at = einx.get_at("[class], ... -> ...")
op one_row(x[c]) = x
op squared_error(y[b|c], t[b|c]) {
  d = y - t
  (d *. d ++ "...|... => 0") /. (dim(y, "b") *. dim(y, "c"))
}

# -- attention --

op project(x; heads, width) = "w" * x + "b" (heads, width)

# each position t of x looks at all positions s; weights are those of softmax, of products over the root of the width
op attention(x[b, t|d]; heads, width, out) {
  k = project(x; heads, width, label = "k")
  v = project(x; heads, width, label = "v")
  weights = softmax(attention_scores(project(x; heads, width, label = "q"), k; width))
  linear(attention_mix(weights, v); out, label = "out")
}

# each position t of x looks at the positions up to t
op causal_attention(x[b, t|d]; heads, width, out) {
  k = project(x; heads, width, label = "k")
  v = project(x; heads, width, label = "v")
  scores = attention_scores(project(x; heads, width, label = "q"), k; width)
  weights = causal_softmax(scores ++ "b, h, t|s => b, h, t, s") ++ "b, h, t, s => b, h, t|s"
  linear(attention_mix(weights, v); out, label = "out")
}
op attention_scores(q, k; width) = (q *+ "b, t|h, w; b, s|h, w => b, h, t|s" k) /. sqrt(width)
op attention_mix(weights, v) = weights *+ "b, h, t|s; b, s|h, w => b, t|h, w" v
causal_softmax(x[b,h,t,s]) = causal_shift >> ^bhts~bhts >> causal_share
causal_shift = (I & >bhts[s<=t]~bht) >> bhts-bht~bhts
causal_share = (I & +bhts[s<=t]~bht) >> bhts[s<=t]/bht~bhts

# attention and a perceptron, each added to what it reads of a normalised row (GPT-2)
op transformer_block(x[b, t|d]; size, heads, hidden) {
  y = x + causal_attention(layer_norm(x; label = "before"); heads, size /. heads, size)
  y + linear(?/linear(layer_norm(y; label = "between"); hidden, label = "up"); size, label = "down")
}

# -- words and sequences --

rows_of(table[v,d], ids: i64[b,t]) = (bt@vd~btd)(ids, table)
op embedding(t: i64[b, s|]; count, width) = rows_of("table" (count, width), t) ++ "b, s, d => b, s|d"

# s has what is handed out, and the state of the cell: row 0 and row 1 of its output axes; the result is the next s
op lstm_cell(x[b|i], s[b|2, n]; width) {
  h = s ++ "b|0, n => b|n"
  enter = sigmoid(linear(x; width, label = "enter") + carry(h; width, label = "enter_h"))
  forget = sigmoid(linear(x; width, label = "forget") + carry(h; width, label = "forget_h"))
  new = tanh(linear(x; width, label = "new") + carry(h; width, label = "new_h"))
  leave = sigmoid(linear(x; width, label = "leave") + carry(h; width, label = "leave_h"))
  c = forget *. (s ++ "b|1, n => b|n") + enter *. new
  pair_of(leave *. tanh(c) ++ "b|n => b, n", c ++ "b|n => b, n") ++ "b, s, n => b|s, n"
}
op carry(h; width) = "w" * h + 0.0 *. "b" width
pair_of = einx.id("b n, b n -> b (1 + 1) n")
"""
