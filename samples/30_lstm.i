# i check samples/30_lstm.i
#
# An LSTM cell. `parts` has four outputs, and the statement gives each a name; the last line lists the results.
# in x = [[1, -1]]
# in h = [[0.5]]
# in c = [[2]]
# in w = [[[1], [0]], [[0], [1]], [[1], [1]], [[2], [1]]]
# in u = [[[1]], [[2]], [[-1]], [[0]]]
# in bias = [[0], [1], [1], [0]]
# out 0 = [[0.6950822]]
# out 1 = [[1.839932]]

cell(x[b,m], h[b,n], c[b,n], w[4,m,n], u[4,n,n], bias[4,n]) = {
  sums = (gbn+gbn~gbn)(gates(x, w), gates(h, u))
  enter, forget, new, leave = parts((gbn+gn~gbn)(sums, bias))
  state = add(times(sigmoid(forget), c), times(sigmoid(enter), tanh(new)))
  times(sigmoid(leave), tanh(state)), state
}
gates = bm*gmn~gbnm >> +gbnm~gbn
parts = 0bn~bn & 1bn~bn & 2bn~bn & 3bn~bn
sigmoid = -bn~bn >> ^bn~bn >> (I | 1) >> bn+.~bn >> /bn~bn
tanh(x) = (bn-.~bn)(twice(sigmoid(twice(x))), 1)
twice = (I | 2) >> bn*.~bn
times = bn*bn~bn
add = bn+bn~bn
