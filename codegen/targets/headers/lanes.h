/* One value of many lanes. */
#ifndef LANES_H
#define LANES_H

#include "numbers.h"
#include "vectors.h"

/* lanes added pairwise, half of them to the other half, until the first one has the sum of all */
#define ADD_HALF(x, half) \
    for (int lane = 0; lane < half; ++lane) x[lane] += x[lane + half]
#define SUM_LANES_2(x) ADD_HALF(x, 1)
#define SUM_LANES_4(x) ADD_HALF(x, 2); SUM_LANES_2(x)
#define SUM_LANES_8(x) ADD_HALF(x, 4); SUM_LANES_4(x)
#define SUM_LANES_16(x) ADD_HALF(x, 8); SUM_LANES_8(x)
#define SUM_LANES_32(x) ADD_HALF(x, 16); SUM_LANES_16(x)
#define SUM_LANES_64(x) ADD_HALF(x, 32); SUM_LANES_32(x)

/* the largest of an even number of vectors of 16 bytes, as max_f32 has it */
static inline float max_lanes_f32(const float *lanes, int count)
{
    float found = lanes[0];
#ifdef __GNUC__
    f32x4 held = *(const f32x4u *)lanes, other = *(const f32x4u *)&lanes[4];
    for (int at = 8; at < count; at += 8) {
        held = MAX_LANES(f32x4, held, *(const f32x4u *)&lanes[at]);
        other = MAX_LANES(f32x4, other, *(const f32x4u *)&lanes[at + 4]);
    }
    held = MAX_LANES(f32x4, held, other);
    found = held[0];
    for (int lane = 1; lane < 4; ++lane) found = max_f32(found, held[lane]);
#else
    for (int lane = 1; lane < count; ++lane) found = max_f32(found, lanes[lane]);
#endif
    return found;
}

/* the largest of an even number of vectors of 16 bytes, as max_f64 has it */
static inline double max_lanes_f64(const double *lanes, int count)
{
    double found = lanes[0];
#ifdef __GNUC__
    f64x2 held = *(const f64x2u *)lanes, other = *(const f64x2u *)&lanes[2];
    for (int at = 4; at < count; at += 4) {
        held = MAX_LANES(f64x2, held, *(const f64x2u *)&lanes[at]);
        other = MAX_LANES(f64x2, other, *(const f64x2u *)&lanes[at + 2]);
    }
    held = MAX_LANES(f64x2, held, other);
    found = held[0];
    for (int lane = 1; lane < 2; ++lane) found = max_f64(found, held[lane]);
#else
    for (int lane = 1; lane < count; ++lane) found = max_f64(found, lanes[lane]);
#endif
    return found;
}

/* the smallest of an even number of vectors of 16 bytes, as min_f32 has it */
static inline float min_lanes_f32(const float *lanes, int count)
{
    float found = lanes[0];
#ifdef __GNUC__
    f32x4 held = *(const f32x4u *)lanes, other = *(const f32x4u *)&lanes[4];
    for (int at = 8; at < count; at += 8) {
        held = MIN_LANES(f32x4, held, *(const f32x4u *)&lanes[at]);
        other = MIN_LANES(f32x4, other, *(const f32x4u *)&lanes[at + 4]);
    }
    held = MIN_LANES(f32x4, held, other);
    found = held[0];
    for (int lane = 1; lane < 4; ++lane) found = min_f32(found, held[lane]);
#else
    for (int lane = 1; lane < count; ++lane) found = min_f32(found, lanes[lane]);
#endif
    return found;
}

/* the smallest of an even number of vectors of 16 bytes, as min_f64 has it */
static inline double min_lanes_f64(const double *lanes, int count)
{
    double found = lanes[0];
#ifdef __GNUC__
    f64x2 held = *(const f64x2u *)lanes, other = *(const f64x2u *)&lanes[2];
    for (int at = 4; at < count; at += 4) {
        held = MIN_LANES(f64x2, held, *(const f64x2u *)&lanes[at]);
        other = MIN_LANES(f64x2, other, *(const f64x2u *)&lanes[at + 2]);
    }
    held = MIN_LANES(f64x2, held, other);
    found = held[0];
    for (int lane = 1; lane < 2; ++lane) found = min_f64(found, held[lane]);
#else
    for (int lane = 1; lane < count; ++lane) found = min_f64(found, lanes[lane]);
#endif
    return found;
}

#endif
