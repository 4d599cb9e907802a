# i run samples/15_types.i '[[7, 8, 9, 9], [-1, 0, 0, 0]]'
#
# Element types are f32, f64, i32, i64 and bool; an input takes its array's unless one is written.
# Integers and floats never mix by themselves: the name of a type is the component that converts.
# Without `f64 >>` the 0.25 would have to be an i32, which is an error.
#
# in marks = i32:[[7, 8, 9, 9], [-1, 0, 0, 0]]
# out = f64:[8.25, -0.25]

averages(marks: i32[m,4]) = +ij~i >> f64 >> (I | 0.25) >> i*.~i
