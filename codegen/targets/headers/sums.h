/* Sums over ranks that go on while something else is computed. */
#ifndef SUMS_H
#define SUMS_H

#include "ranks.h"

/* a sum that goes on while something else is computed */
struct begun_sum {
#ifdef WITH_MPI
    MPI_Request request;
#else
    int none;
#endif
};

/* begin the sum over all ranks in place of the values of this one, which nobody reads before it ends */
static void begin_sum(struct begun_sum *sum, void *values, uint64_t count, char letter, int ranks)
{
#ifdef WITH_MPI
    const MPI_Datatype type = TYPE_OF_LETTER(letter);
    sum->request = MPI_REQUEST_NULL;
    if (count > MOST_SENT) {
        sum_over_ranks(values, count, letter, ranks);
    } else if (ranks > 1) {
        MPI_Iallreduce(MPI_IN_PLACE, values, (int)count, type, MPI_SUM, MPI_COMM_WORLD, &sum->request);
    }
#else
    sum->none = 0;
#endif
    (void)values, (void)count, (void)letter, (void)ranks;
}

/* end sums that have begun, as all ranks do */
static void end_sums(struct begun_sum *sums, int count)
{
#ifdef WITH_MPI
    for (int n = 0; n < count; ++n) {
        if (sums[n].request != MPI_REQUEST_NULL) MPI_Wait(&sums[n].request, MPI_STATUS_IGNORE);
    }
#endif
    (void)sums, (void)count;
}

#endif
