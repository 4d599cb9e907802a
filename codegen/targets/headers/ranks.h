/*
 * Ranks: processes that run a program together, each on a share of the data. They are those of MPI where this is
 * compiled with -DWITH_MPI, and began; else this process is alone.
 */
#ifndef RANKS_H
#define RANKS_H

#include <stdint.h>

#ifdef WITH_MPI
#include <mpi.h>
#endif

/* begin and end to be one of them */
static inline void begin_ranks(void)
{
#ifdef WITH_MPI
    int begun = 0;
    MPI_Initialized(&begun);
    if (!begun) MPI_Init(NULL, NULL);
#endif
}

static inline void end_ranks(void)
{
#ifdef WITH_MPI
    MPI_Finalize();
#endif
}

/* how many there are, and which one this is */
static inline int count_ranks(int *rank)
{
    int ranks = 1;
    *rank = 0;
#ifdef WITH_MPI
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (!begun || ended) return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
#endif
    return ranks;
}

/* what a rank returns: its status, or 8 where that is 0 and another rank has one; all ranks come here */
static inline int status_of_ranks(int status, int ranks)
{
    int failed = status != 0;
#ifdef WITH_MPI
    if (ranks > 1) MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
#endif
    (void)ranks;
    return status == 0 && failed ? 8 : status;
}

/* as many elements as one message may have */
#define MOST_SENT ((uint64_t)1 << 30)

/* an element type of MPI by its letter */
#define TYPE_OF_LETTER(letter) \
    ((letter) == 'f' ? MPI_FLOAT : (letter) == 'd' ? MPI_DOUBLE : (letter) == 'i' ? MPI_INT32_T : MPI_INT64_T)

/* how many elements a message has that begins with one of them; a macro, since without MPI nothing calls it */
#define PART_OF_MESSAGE(count, first) ((int)((count) - (first) < MOST_SENT ? (count) - (first) : MOST_SENT))

/* the bytes before an element */
#define BYTES_BEFORE(first, letter) ((uint64_t)(first) * ((letter) == 'f' || (letter) == 'i' ? 4 : 8))

/* the sum over all ranks in place of the values of this one: MPI adds in one order for all of them */
static inline void sum_over_ranks(void *values, uint64_t count, char letter, int ranks)
{
#ifdef WITH_MPI
    for (uint64_t n = 0; ranks > 1 && n < count; n += MOST_SENT) {
        char *const some = (char *)values + BYTES_BEFORE(n, letter);
        MPI_Allreduce(MPI_IN_PLACE, some, PART_OF_MESSAGE(count, n), TYPE_OF_LETTER(letter), MPI_SUM, MPI_COMM_WORLD);
    }
#endif
    (void)values, (void)count, (void)letter, (void)ranks;
}

/* add the values of the other ranks, in their order, to what begins with zeros; there is room for those of one rank */
static inline void sum_over_others(
    void *sums, void *values, void *room, uint64_t count, char letter, int rank, int ranks)
{
#ifdef WITH_MPI
    const MPI_Datatype type = TYPE_OF_LETTER(letter);
    for (int from = 0; ranks > 1 && from < ranks; ++from) {
        char *const part = from == rank ? values : room;
        for (uint64_t n = 0; n < count; n += MOST_SENT) {
            const uint64_t bytes = BYTES_BEFORE(n, letter);
            const int some = PART_OF_MESSAGE(count, n);
            MPI_Bcast(part + bytes, some, type, from, MPI_COMM_WORLD);
            if (from != rank) MPI_Reduce_local(part + bytes, (char *)sums + bytes, some, type, MPI_SUM);
        }
    }
#endif
    (void)sums, (void)values, (void)room, (void)count, (void)letter, (void)rank, (void)ranks;
}

#endif
