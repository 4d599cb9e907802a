/* Arithmetic that C has no operator for. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <stdint.h>

/* a / b rounded up; b is positive */
static inline int64_t ceil_i64(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

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

/* the larger of two; NaN if one is */
static inline float max_f32(float a, float b)
{
    const float one = (b > a) ? b : a;
    return b != b ? b : one;
}

/* the larger of two; NaN if one is */
static inline double max_f64(double a, double b)
{
    const double one = (b > a) ? b : a;
    return b != b ? b : one;
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

/* the smaller of two; NaN if one is */
static inline float min_f32(float a, float b)
{
    const float one = (b < a) ? b : a;
    return b != b ? b : one;
}

/* the smaller of two; NaN if one is */
static inline double min_f64(double a, double b)
{
    const double one = (b < a) ? b : a;
    return b != b ? b : one;
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

static inline float square_f32(float a)
{
    return a * a;
}

static inline double square_f64(double a)
{
    return a * a;
}

#endif
