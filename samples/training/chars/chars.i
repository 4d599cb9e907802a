# A small transformer that reads characters and says which comes next, trained with Adam.
#
# x has the bytes of texts, y those that follow them: i64[b,t|], b texts of t bytes, each less than 128.

rows(n: i64[b,t], e[v,d]) = bt@vd~btd
chosen(n: i64[b,t], z[b,t,v]) = bt@btv~bt

# every place looks at those before it and at itself
attention(q[b,t,h,e], k[b,s,h,e], v[b,s,h,e]) = {
  a = (bthe*bshe~bthse >> +bthse~bths)(q, k)
  m = (>bths[s<=t]~bth)(a)
  w = (bths-bth~bths >> ^bths~bths)(a, m)
  n = (+bths[s<=t]~bth)(w)
  o = (bths[s<=t]*bshe~bthse >> +bthse~bthe)(w, v)
  (bthe/bth~bthe)(o, n)
}

op norm(x; size) {
  c = x - (x ++ "...|d => ...|0") /. size
  v = (c *. c ++ "...|d => ...|0") /. size
  "g" 1.0 *. c /. sqrt(v + 0.00001) + "b" 0.0
}

op block(x; d, heads, each) {
  n = norm(x; d)
  q = "wq" * n + "bq" (heads, each)
  k = "wk" * n + "bk" (heads, each)
  v = "wv" * n + "bv" (heads, each)
  mixed = attention(q /. (each **. 0.5), k, v) ++ "bthe => bt|he"
  y = x + "o" * mixed
  y + "down" * ?/("up" * norm(y; d) + "b" (4 *. d))
}

op chars(x: i64[b, t|]; d = 48, layers = 2, heads = 3) {
  here = rows(x, "letters" (128, d)) ++ "btd => bt|d"
  h = repeat(h = here + ("places" ++ "td => t|d"); n in layers) { block(h; d, heads, 16) }
  "out" * norm(h; d) + "c" 128
}

# the mean of -log of the share of the right byte
op loss_of(z, y; count) {
  below = z - einmax("...|v => ...|0", z)
  whole = log(exp(below) ++ "...|v => ...|0")
  right = chosen(y, below ++ "bt|v => btv") ++ "bt => bt|"
  ((whole ++ "...|v => ...|") - right) ++ "...|... => 0"
}

cd adam(p; lr, b1 = 0.9, b2 = 0.99) {
  "c1" =: b1 *. c1 + (1 - b1)
  "c2" =: b2 *. c2 + (1 - b2)
  "m" =: b1 *. m + (1 - b1) *. p.grad
  "v" =: b2 *. v + (1 - b2) *. (p.grad *. p.grad)
  p =- lr *. (m /. c1) /. (sqrt(v /. c2) + 0.00000001)
}

cd step(x: i64[b, t|], y: i64[b, t|]; lr = 0.003, count = 256) {
  z = chars(x)
  loss = loss_of(z, y; count) /. count
  backprop(loss)
  for p in params(loss) {
    p.grad =+ p.grad.merge
    p.grad =/ ranks
    adam(p; lr)
  }
  return loss
}
