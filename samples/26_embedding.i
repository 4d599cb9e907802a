# i run samples/26_embedding.i '[[2, 0, 2]]' '[[1, 2], [3, 4], [5, 6]]' '[10, 1]'
#
# An element as an index: `bt@vd` is row ids[b,t] of the table, whose axis v is looked up, and no loop. What
# follows is computed in the same loops. An index that is not in the table is refused.
#
# in ids = i64:[[2, 0, 2]]
# in table = [[1, 2], [3, 4], [5, 6]]
# in scale = [10, 1]
# out = [[[50, 6], [10, 2], [50, 6]]]

embed(ids: i64[b,t], table[v,d], scale[d]) = bt@vd~btd >> btd*d~btd
