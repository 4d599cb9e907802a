# i check samples/31_waves.i
#
# A step of electromagnetic waves in a box (FDTD): the fields h follow the differences of e, then e those of h.
# Outside the grid all is 0. A value may be read any number of times: `up_y(e, e)` subtracts e from its neighbours.
# in e = [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
# in hx = [[0, 0, 0], [0, 0, 0], [0, 0, 0]]
# in hy = [[0, 0, 0], [0, 0, 2], [0, 0, 0]]
# in dt = 0.5
# out 0 = [[0, 0.25, 0], [0.25, 0, 1.25], [0, 0.25, -1]]
# out 1 = [[0, 0, 0], [-0.5, 0.5, 0], [0, 0, 0]]
# out 2 = [[0, 0.5, 0], [0, -0.5, 2], [0, 0, 0]]

step(e[n,m], hx[n,m], hy[n,m], dt[]) = {
  bx = less(hx, scaled(up_y(e, e), dt))
  by = add(hy, scaled(up_x(e, e), dt))
  curl = less(down_x(by, by), down_y(bx, bx))
  add(e, scaled(curl, dt)), bx, by
}
up_x = (x+1)y-xy~xy
up_y = x(y+1)-xy~xy
down_x = xy-(x-1)y~xy
down_y = xy-x(y-1)~xy
scaled = xy*.~xy
add = xy+xy~xy
less = xy-xy~xy
