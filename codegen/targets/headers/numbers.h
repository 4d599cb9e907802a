/* Arithmetic that C has no operator for. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <math.h>
#include <stdint.h>
#include "elementary.h"

/* towards zero; what does not fit gives the smallest value */
static inline int32_t i32_of_f32(float a)
{
    return (a >= -2147483648.0f && a < 2147483648.0f) ? (int32_t)a : INT32_MIN;
}

/* towards zero; what does not fit gives the smallest value */
static inline int32_t i32_of_f64(double a)
{
    return (a >= -2147483648.0 && a < 2147483648.0) ? (int32_t)a : INT32_MIN;
}

/* towards zero; what does not fit gives the smallest value */
static inline int64_t i64_of_f32(float a)
{
    return (a >= -9223372036854775808.0f && a < 9223372036854775808.0f) ? (int64_t)a : INT64_MIN;
}

/* towards zero; what does not fit gives the smallest value */
static inline int64_t i64_of_f64(double a)
{
    return (a >= -9223372036854775808.0 && a < 9223372036854775808.0) ? (int64_t)a : INT64_MIN;
}

/* a + b, one of which is 0: GCC 12 makes -b of 0 - b and of 0 + -b where it thinks that b is no -0 */
static inline float add_f32(float a, float b)
{
    return a + b;
}

/* a + b, one of which is 0: GCC 12 makes -b of 0 - b and of 0 + -b where it thinks that b is no -0 */
static inline double add_f64(double a, double b)
{
    return a + b;
}

/* a - b, one of which is 0: GCC 12 makes -b of 0 - b and of 0 + -b where it thinks that b is no -0 */
static inline float sub_f32(float a, float b)
{
    return a - b;
}

/* a - b, one of which is 0: GCC 12 makes -b of 0 - b and of 0 + -b where it thinks that b is no -0 */
static inline double sub_f64(double a, double b)
{
    return a - b;
}

/* one of two, both read: GCC 12 makes wrong vector code of loads under a condition in small nested loops */
static inline float where_f32(int which, float a, float b)
{
    return which ? a : b;
}

/* one of two, both read: GCC 12 makes wrong vector code of loads under a condition in small nested loops */
static inline double where_f64(int which, double a, double b)
{
    return which ? a : b;
}

/* one of two by their bits: GCC 12 makes no vectors of a reduction of choices */
static inline int32_t where_i32(int which, int32_t a, int32_t b)
{
    return b ^ ((a ^ b) & -(int32_t)(which != 0));
}

/* one of two by their bits: GCC 12 makes no vectors of a reduction of choices */
static inline int64_t where_i64(int which, int64_t a, int64_t b)
{
    return b ^ ((a ^ b) & -(int64_t)(which != 0));
}

/* one of two, both read: GCC 12 makes wrong vector code of loads under a condition in small nested loops */
static inline uint8_t where_bool(int which, uint8_t a, uint8_t b)
{
    return which ? a : b;
}

/* the larger of two; NaN if one is, and 0 is larger than -0: both comparisons are maxps, bits differ for zeros and NaN */
static inline float max_f32(float a, float b)
{
    union { float x; uint32_t bits; } larger = {a > b ? a : b}, other = {b > a ? b : a};
    larger.bits = (larger.bits & other.bits) | -(uint32_t)(!((a <= b) | (b <= a)));
    return larger.x;
}

/* the larger of two; NaN if one is, and 0 is larger than -0: both comparisons are maxps, bits differ for zeros and NaN */
static inline double max_f64(double a, double b)
{
    union { double x; uint64_t bits; } larger = {a > b ? a : b}, other = {b > a ? b : a};
    larger.bits = (larger.bits & other.bits) | -(uint64_t)(!((a <= b) | (b <= a)));
    return larger.x;
}

/* the larger of two */
static inline int32_t max_i32(int32_t a, int32_t b)
{
    return (b > a) ? b : a;
}

/* the larger of two */
static inline int64_t max_i64(int64_t a, int64_t b)
{
    return (b > a) ? b : a;
}

/* the smaller of two; NaN if one is, and -0 is smaller than 0: both comparisons are minps, bits differ for zeros and NaN */
static inline float min_f32(float a, float b)
{
    union { float x; uint32_t bits; } smaller = {a < b ? a : b}, other = {b < a ? b : a};
    smaller.bits |= other.bits;
    return smaller.x;
}

/* the smaller of two; NaN if one is, and -0 is smaller than 0: both comparisons are minps, bits differ for zeros and NaN */
static inline double min_f64(double a, double b)
{
    union { double x; uint64_t bits; } smaller = {a < b ? a : b}, other = {b < a ? b : a};
    smaller.bits |= other.bits;
    return smaller.x;
}

/* the smaller of two */
static inline int32_t min_i32(int32_t a, int32_t b)
{
    return (b < a) ? b : a;
}

/* the smaller of two */
static inline int64_t min_i64(int64_t a, int64_t b)
{
    return (b < a) ? b : a;
}

/* the integer of a number in the order of all of them, -0 before 0 and NaN above all others */
static inline int32_t order_max_f32(float a)
{
    union { float x; int32_t bits; } number = {a};
    return (int32_t)((uint32_t)(number.bits ^ ((number.bits >> 31) & 0x7FFFFFFF)) - 0x7FFFFF);
}

/* the number of such an integer */
static inline float ordered_max_f32(int32_t order)
{
    union { int32_t bits; float x; } number = {(int32_t)((uint32_t)order + 0x7FFFFF)};
    number.bits ^= (number.bits >> 31) & 0x7FFFFFFF;
    return number.x;
}

/* the integer of a number in the order of all of them, -0 before 0 and NaN above all others */
static inline int64_t order_max_f64(double a)
{
    union { double x; int64_t bits; } number = {a};
    return (int64_t)((uint64_t)(number.bits ^ ((number.bits >> 63) & 0x7FFFFFFFFFFFFFFF)) - 0xFFFFFFFFFFFFF);
}

/* the number of such an integer */
static inline double ordered_max_f64(int64_t order)
{
    union { int64_t bits; double x; } number = {(int64_t)((uint64_t)order + 0xFFFFFFFFFFFFF)};
    number.bits ^= (number.bits >> 63) & 0x7FFFFFFFFFFFFFFF;
    return number.x;
}

/* the integer of a number in the order of all of them, -0 before 0 and NaN below all others */
static inline int32_t order_min_f32(float a)
{
    union { float x; int32_t bits; } number = {a};
    return (int32_t)((uint32_t)(number.bits ^ ((number.bits >> 31) & 0x7FFFFFFF)) + 0x7FFFFF);
}

/* the number of such an integer */
static inline float ordered_min_f32(int32_t order)
{
    union { int32_t bits; float x; } number = {(int32_t)((uint32_t)order - 0x7FFFFF)};
    number.bits ^= (number.bits >> 31) & 0x7FFFFFFF;
    return number.x;
}

/* the integer of a number in the order of all of them, -0 before 0 and NaN below all others */
static inline int64_t order_min_f64(double a)
{
    union { double x; int64_t bits; } number = {a};
    return (int64_t)((uint64_t)(number.bits ^ ((number.bits >> 63) & 0x7FFFFFFFFFFFFFFF)) + 0xFFFFFFFFFFFFF);
}

/* the number of such an integer */
static inline double ordered_min_f64(int64_t order)
{
    union { int64_t bits; double x; } number = {(int64_t)((uint64_t)order - 0xFFFFFFFFFFFFF)};
    number.bits ^= (number.bits >> 63) & 0x7FFFFFFFFFFFFFFF;
    return number.x;
}

static inline float square_f32(float a)
{
    return a * a;
}

static inline double square_f64(double a)
{
    return a * a;
}

/* a / b rounded down; 0 where b is 0, and what does not fit wraps */
static inline int32_t floor_divide_i32(int32_t a, int32_t b)
{
    if (b == 0) return 0;
    if (b == -1) return (int32_t)((uint32_t)0 - (uint32_t)a);
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

/* a / b rounded down; 0 where b is 0, and what does not fit wraps */
static inline int64_t floor_divide_i64(int64_t a, int64_t b)
{
    if (b == 0) return 0;
    if (b == -1) return (int64_t)((uint64_t)0 - (uint64_t)a);
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

/* a / b rounded down as if divided without rounding before: in double no quotient below 2^29 meets the next integer */
static inline float floor_divide_f32(float a, float b)
{
    const double quotient = (double)a / (double)b;
    const int below = quotient == 0 && a != 0 && (a < 0) != (b < 0); /* b is infinite */
    const double down = below ? -1.0 : floor(quotient);
    return a - a == 0 || b == 0 ? (float)down : a - a; /* as by fmod, infinity over a number is NaN */
}

/* a / b rounded down as if divided without rounding before */
static inline double floor_divide_f64(double a, double b)
{
    if (b == 0) return a / b;
    const double rest = fmod(a, b);
    const double whole = (a - rest) / b - (rest != 0 && (b < 0) != (rest < 0) ? 1.0 : 0.0);
    if (whole == 0) return copysign(0.0, a / b);
    const double down = floor(whole);
    return whole - down > 0.5 ? down + 1.0 : down;
}

/* out[i] = x[i] / b, by the reciprocal of b where this gives the quotients (quotient_f32) */
INLINED void divide_row_f32(float *restrict out, const float *restrict x, int64_t count, float b)
{
#ifdef FUSED
    uint32_t greatest = UINT32_MAX;
    if (divides_f32(b)) {
        const float r = 1.0f / b;
        greatest = 0;
#pragma GCC unroll 1
        for (int64_t i = 0; i < count; ++i) {
            out[i] = quotient_f32(x[i], b, r);
            const uint32_t size = bits_of_f32(x[i]) << 1;
            greatest = size > greatest ? size : greatest;
        }
    }
    if (greatest <= MOST_DIVIDED) return;
#endif
#pragma GCC unroll 1
    for (int64_t i = 0; i < count; ++i) out[i] = x[i] / b;
}

#endif
