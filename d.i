op f(x, y) = x *. y
op g(x[n|]) { d = x; d *. d ++ "...|i => ...|" }
