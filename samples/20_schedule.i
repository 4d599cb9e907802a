# i explain samples/20_schedule.i
#
# After an expression may stand a schedule, `| splits | order | roles`: how its loops run, never what
# they compute. Here the loop over i is split in steps of 2, and the sum computes the products inside
# its innermost loop (the 0: its input number 0) and runs the outer i on several cores (the p).
# `i check` compares it with the program without schedules; `i explain --schedule` prints what runs,
# also for expressions that have none.
#
# in x = [[1, 2], [3, 4], [5, 6]]
# in y = [[1, 0], [0, 1]]
# out = [[1, 2], [3, 4], [5, 6]]

matmul(x[m,k], y[k,n]) = ik*kj~ijk | i:2 | i i' k j >> +ijk~ij | i:2 | i i' k j 0 | i:p
