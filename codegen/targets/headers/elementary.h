/*
 * Elementary functions.
 *
 * Methods are those of W. J. Cody and W. Waite, Software Manual for the Elementary Functions (1980), and of fdlibm where
 * it is named; polynomials are minimax ones, found with Remez' algorithm and rounded, but for those of fdlibm and Cephes.
 *
 * muladd may round once or twice. Where that must not matter, the product is exact either way: n times the high part of
 * ln(2). Where something is rounded to a whole number, one rounding finds the nearest one at least as often.
 */
#ifndef ELEMENTARY_H
#define ELEMENTARY_H

#include <math.h>
#include <stdint.h>

/*
 * Elementary functions without a branch: a loop over them becomes vector code, whatever calls they take.
 * Subnormal numbers, infinities and NaN are what C says; an ulp is a unit in the last place of the result.
 */
#if defined(__FAST_MATH__) || (defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ > 0 && __FLT_EVAL_METHOD__ < 16)
#error "these functions need each operation rounded as written: no -ffast-math, and on 32-bit x86 -mfpmath=sse"
#endif
#ifdef __GNUC__
#define INLINED static inline __attribute__((always_inline, unused)) /* some serve machines with FUSED alone */
#else
#define INLINED static inline
#endif
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define FUSED /* fma is an instruction */
#endif

/* a b + c, with one rounding where that is an instruction; what calls it is right with one and with two */
INLINED float muladd_f32(float a, float b, float c)
{
#ifdef FUSED
    return fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* a b + c, with one rounding where that is an instruction; what calls it is right with one and with two */
INLINED double muladd_f64(double a, double b, double c)
{
#ifdef FUSED
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}

INLINED uint32_t bits_of_f32(float x)
{
    const union { float x; uint32_t bits; } both = {x};
    return both.bits;
}

INLINED float f32_of_bits(uint32_t bits)
{
    const union { uint32_t bits; float x; } both = {bits};
    return both.x;
}

INLINED uint64_t bits_of_f64(double x)
{
    const union { double x; uint64_t bits; } both = {x};
    return both.bits;
}

INLINED double f64_of_bits(uint64_t bits)
{
    const union { uint64_t bits; double x; } both = {bits};
    return both.x;
}

/* the nearest float with the 11 significant bits of TF32, of two the one further from zero; a NaN becomes a quiet one */
INLINED float tf32_f32(float x)
{
    const uint32_t bits = bits_of_f32(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? x + x : f32_of_bits((bits + 0x1000u) & ~0x1fffu);
}

INLINED double tf32_f64(double x)
{
    const uint64_t bits = bits_of_f64(x), unit = (uint64_t)1 << 42;
    return (bits >> 52 & 0x7ff) == 0x7ff ? x + x : f64_of_bits((bits + unit / 2) & ~(unit - 1));
}

/* the nearest float with the 8 significant bits of bf16, of two the even one; a NaN becomes a quiet one of as few bits */
INLINED float bf16_f32(float x)
{
    const uint32_t bits = bits_of_f32(x);
    const uint32_t nearest = bits + 0x7fffu + (bits >> 16 & 1u), quiet = bits | 0x400000u;
    return f32_of_bits(((bits & 0x7fffffffu) > 0x7f800000u ? quiet : nearest) & 0xffff0000u);
}

INLINED double bf16_f64(double x)
{
    const uint64_t bits = bits_of_f64(x), unit = (uint64_t)1 << 45, infinite = (uint64_t)0x7ff << 52;
    const uint64_t nearest = bits + (unit / 2 - 1) + (bits / unit & 1), quiet = bits | (uint64_t)1 << 51;
    return f64_of_bits(((bits & ~((uint64_t)1 << 63)) > infinite ? quiet : nearest) & ~(unit - 1));
}

/* e to the power r, |r| <= ln(2) / 2 */
INLINED float power_f32(float r)
{
    const float r2 = r * r;
    const float p2 = muladd_f32(r2, 1.3814544e-3f, muladd_f32(r, 8.3687445e-3f, 4.1668389e-2f));
    const float p1 = muladd_f32(r, 0.16666521f, 0.49999994f);
    return muladd_f32(muladd_f32(p2, r2, p1), r2, r) + 1.0f;
}

/* e to the power x = n ln(2) + r: 2^n times a polynomial in r (Cody and Waite); within 1.1 ulp */
INLINED float exp_f32(float x)
{
    x = x < -176.0f ? -176.0f : x; /* n = -254: both factors are 0, and no product underflows, which takes long */
    /* n is rounded to a whole number by 1.5 * 2^23, and has 2 * 127 added */
    const int32_t shifted = (int32_t)bits_of_f32(muladd_f32(x, 1.44269504f, 12583166.0f));
    const int32_t capped = shifted < 0x4b400194 ? shifted : 0x4b400194; /* n = 150: from there on it is infinity */
    const uint32_t bits = (uint32_t)capped, half = bits >> 1;
    const float n = f32_of_bits(bits) - 12583166.0f;
    const float r = muladd_f32(n, 2.12194440e-4f, muladd_f32(n, -0.693359375f, x));
    const float p = power_f32(r);
    return p * f32_of_bits(half << 23) * f32_of_bits((bits - half) << 23); /* 2^n alone may be no float */
}

/* natural logarithm of x = 2^n (1 + f), |f| <= 1/3: n ln(2) and a polynomial in f; within 1 ulp */
INLINED float ln_f32(float x)
{
    const float factor = x < 0x1p-126f ? 0x1p23f : 1.0f; /* for subnormal numbers */
    const float lift = x < 0x1p-126f ? 23.0f : 0.0f;
    const uint32_t bits = bits_of_f32(x * factor) - 0x3f2aaaabu; /* less those of 2/3 */
    const float n = (float)((int32_t)bits >> 23) - lift;
    const float f = f32_of_bits((bits & 0x007fffffu) + 0x3f2aaaabu) - 1.0f;
    const float f2 = f * f;
    float p = muladd_f32(f2, 0.120071724f, muladd_f32(f, -0.1284509f, 0.10754233f));
    p = muladd_f32(p, f2, muladd_f32(f, -0.12195771f, 0.14304456f));
    p = muladd_f32(p, f2, muladd_f32(f, -0.16679579f, 0.19999598f));
    p = muladd_f32(p, f2, muladd_f32(f, -0.2499982f, 0.33333334f));
    p = muladd_f32(p, f, -0.5f) * f2;
    /* what turns the finite number above into the result for 0, negative numbers, infinity and NaN */
    const float below = x < 0.0f ? NAN : -INFINITY;
    const float above = x < INFINITY ? 0.0f : x;
    return muladd_f32(n, 0.693359375f, muladd_f32(n, -2.12194440e-4f, p) + f) + (x <= 0.0f ? below : above);
}

/* hyperbolic tangent: an odd polynomial below 0.55, from there 1 - 2 / (e^2x + 1); within 1.5 ulp */
INLINED float tanh_f32(float x)
{
    const uint32_t sign = bits_of_f32(x) & 0x80000000u;
    const float a = f32_of_bits(bits_of_f32(x) ^ sign);
    const float z = a * a;
    float p = muladd_f32(z, -6.2742485e-3f, 2.1071684e-2f);
    p = muladd_f32(p, z, -5.3852312e-2f);
    p = muladd_f32(p, z, 0.13332586f);
    p = muladd_f32(p, z, -0.33333316f);
    const float small = muladd_f32(p * z, a, a);
    const float b = a > 9.1f ? 9.1f : a; /* from there on it is 1 */
    const float shifted = muladd_f32(b, 2.88539008f, 12583039.0f); /* as in exp; 127 for below */
    const float n = shifted - 12583039.0f;
    const float r = muladd_f32(n, 2.12194440e-4f, muladd_f32(n, -0.693359375f, b + b));
    const float e = power_f32(r) * f32_of_bits(bits_of_f32(shifted) << 23);
    const float large = 1.0f - 2.0f / (e + 1.0f);
    return f32_of_bits(bits_of_f32(a < 0.55f ? small : large) | sign);
}

/* error function: an odd polynomial below 0.93, from there 1 less e to the power of a polynomial; within 1.5 ulp */
INLINED float erf_f32(float x)
{
    const uint32_t sign = bits_of_f32(x) & 0x80000000u;
    const float a = f32_of_bits(bits_of_f32(x) ^ sign);
    const float z = a * a;
    float p = muladd_f32(z, -5.96761703e-4f, 4.99119423e-3f);
    p = muladd_f32(p, z, -2.67681349e-2f);
    p = muladd_f32(p, z, 1.12819925e-1f);
    p = muladd_f32(p, z, -3.76125336e-1f);
    p = muladd_f32(p, z, 1.28379166e-1f);
    const float small = muladd_f32(p, a, a);
    const float b = a > 4.0f ? 4.0f : a; /* from there on it is 1 */
    float q = muladd_f32(b, -1.72853470e-5f, 3.83197126e-4f);
    q = muladd_f32(q, b * b, muladd_f32(b, -3.88396438e-3f, 2.42546219e-2f));
    q = muladd_f32(q, b, -1.06777877e-1f);
    q = muladd_f32(q, b, -6.34846687e-1f);
    q = muladd_f32(q, b, -1.28717512e-1f);
    const float large = 1.0f - exp_f32(muladd_f32(q, b, -b));
    return f32_of_bits(bits_of_f32(a > 0.927734375f ? large : small) | sign);
}

/*
 * x to the power y, as 2 to the power y log2(x): the logarithm and the product in double, the rest in float;
 * within 1.5 ulp. A negative x has a power where y is whole, with the sign of x where y is odd.
 */
INLINED float pow_f32(float x, float y)
{
    const uint32_t sign = bits_of_f32(x) & 0x80000000u;
    const float a = f32_of_bits(bits_of_f32(x) ^ sign);
    const float size = f32_of_bits(bits_of_f32(y) & 0x7fffffffu);
    const int whole = (size >= 0x1p23f) | (size + 0x1p23f - 0x1p23f == size);
    const int even = (size >= 0x1p24f) | (size + 0x1p24f - 0x1p24f == size);
    const uint32_t flip = (whole & !even) != 0 ? sign : 0u;
    /* what turns a finite logarithm into that of 0, infinity and NaN; 1 to any power and any x to 0 are 1 */
    const float negative = (whole | !(x < 0.0f)) != 0 ? 0.0f : NAN;
    const float above = a < INFINITY ? negative : a;
    const float special = a <= 0.0f ? -INFINITY : above;
    const float limit = y == 0.0f ? 0.0f : special;
    y = a == 1.0f ? 0.0f : y;
    /* log2(a) = n + f q, for a = 2^n (1 + f), |f| <= 1/3 */
    const float factor = a < 0x1p-126f ? 0x1p23f : 1.0f; /* for subnormal numbers */
    const float lift = a < 0x1p-126f ? 23.0f : 0.0f;
    const uint32_t bits = bits_of_f32(a * factor) - 0x3f2aaaabu; /* less those of 2/3 */
    const float n = (float)((int32_t)bits >> 23) - lift + limit;
    const float f = f32_of_bits((bits & 0x007fffffu) + 0x3f2aaaabu) - 1.0f;
    const float f2 = f * f;
    const float p3 = muladd_f32(f, -0.1658152f, 0.17607945f);
    const float p2 = muladd_f32(f, -0.13754986f, 0.15432623f);
    const float p1 = muladd_f32(f, -0.18079619f, 0.20645423f);
    const float p0 = muladd_f32(f, -0.24043414f, 0.2885296f);
    const float p = muladd_f32(muladd_f32(p3, f2, p2), f2 * f2, muladd_f32(p1, f2, p0));
    const double d = (double)f, d2 = d * d;
    const double q1 = muladd_f64(d, -0.36067396905399796, 0.48089843779613234);
    const double q0 = muladd_f64(d, -0.7213475196224612, 1.442695040747506);
    const double q = muladd_f64(muladd_f64((double)p, d2, q1), d2, q0);
    double t = (double)y * muladd_f64(q, d, (double)n);
    t = t < -200.0 ? -200.0 : t;
    const int32_t shifted = (int32_t)bits_of_f32((float)t + 12583166.0f); /* as in exp */
    const int32_t capped = shifted < 0x4b400194 ? shifted : 0x4b400194;
    const uint32_t rounded = (uint32_t)capped, half = rounded >> 1;
    const double rest = t - (double)(f32_of_bits(rounded) - 12583166.0f);
    const float e = power_f32((float)(rest * 0.6931471805599453)) * f32_of_bits(half << 23);
    return f32_of_bits(bits_of_f32(e * f32_of_bits((rounded - half) << 23)) ^ flip);
}

/*
 * The quarters of a turn in |x|, modulo 2^32, and what is left of it, |r| <= 0.51 pi / 2 (Payne and Hanek).
 * High bits of 2 / pi that only add whole turns are left out, so that three parts of it serve any x.
 */
INLINED uint32_t quarters_f32(float x, float *r)
{
    const double a = (double)f32_of_bits(bits_of_f32(x) & 0x7fffffffu);
    double c1 = a < 0x1p50 ? 0x1.45f306cp-1 : 0x1.b939105p-26;
    double c2 = a < 0x1p50 ? 0x1.c9c882ap-29 : 0x1.29fc274p-56;
    double c3 = a < 0x1p50 ? 0x1.4fe13abe8fa9ap-59 : 0x1.7d1f534ddc0dbp-84;
    c1 = a < 0x1p76 ? c1 : 0x1.529fc27p-52;
    c2 = a < 0x1p76 ? c2 : 0x1.5f47d4cp-82;
    c3 = a < 0x1p76 ? c3 : 0x1.377036d8a5665p-110;
    c1 = a < 0x1p102 ? c1 : 0x1.d5f47d4p-78;
    c2 = a < 0x1p102 ? c2 : 0x1.a6ee06dp-107;
    c3 = a < 0x1p102 ? c3 : 0x1.6295993c43904p-136;
    double high = a * c1, low = a * c2; /* exact: 24 bits by 29 */
    high = high - (high + 0x1.8p54 - 0x1.8p54);
    low = low - (low + 0x1.8p54 - 0x1.8p54);
    const double shifted = high + low + 0x1.8p52;
    *r = (float)(muladd_f64(a, c3, high - (shifted - 0x1.8p52) + low) * 1.5707963267948966);
    return (uint32_t)bits_of_f64(shifted);
}

/* the sine of so many quarters of a turn and r: a polynomial for the sine of r, one for the cosine */
INLINED float wave_f32(uint32_t quarters, float r)
{
    const float z = r * r;
    float p = muladd_f32(z, -1.9502135e-4f, 8.332063e-3f);
    p = muladd_f32(p, z, -0.16666654f);
    const float sine = muladd_f32(p * z, r, r);
    float q = muladd_f32(z, 2.4418136e-5f, -1.3887185e-3f);
    q = muladd_f32(q, z, 4.166664e-2f);
    const float cosine = muladd_f32(q, z * z, z * -0.5f) + 1.0f;
    return f32_of_bits(bits_of_f32((quarters & 1u) == 0 ? sine : cosine) ^ ((quarters & 2u) << 30));
}

/* sine of any number; within 1.6 ulp */
INLINED float sin_f32(float x)
{
    float r;
    const uint32_t quarters = quarters_f32(x, &r);
    return f32_of_bits(bits_of_f32(wave_f32(quarters, r)) ^ (bits_of_f32(x) & 0x80000000u));
}

/* cosine of any number; within 1.6 ulp */
INLINED float cos_f32(float x)
{
    float r;
    const uint32_t quarters = quarters_f32(x, &r);
    return wave_f32(quarters + 1u, r);
}

#define MOST_DIVIDED 0xb1000000u /* the bits of 2^50, without their sign */

/* whether quotient_f32 divides by a number */
INLINED int divides_f32(float b)
{
    return b >= 0x1p-24f && b <= 0x1p64f;
}

/*
 * a / b to the last bit for r = 1 / b, 2^-24 <= b <= 2^64 and |a| <= 2^50: a * r, and what that leaves of a divided too
 * (Markstein). It is scaled so that nothing underflows; a quotient below 2^-126 is rounded twice. The sign of r is
 * changed, not that of what is left: of that, GCC loses the sign of a zero.
 */
INLINED float quotient_f32(float a, float b, float r)
{
    const float scaled = a * 0x1p50f, q = scaled * r;
    return fmaf(fmaf(q, b, -scaled), -r, q) * 0x1p-50f;
}

/* e to the power r, |r| <= ln(2) / 2 */
INLINED double power_f64(double r)
{
    const double r2 = r * r;
    double p = muladd_f64(r, 2.5000056708160523e-8, 2.7630247990155085e-7);
    p = muladd_f64(p, r2, muladd_f64(r, 2.755758638843295e-6, 2.480149310007098e-5));
    p = muladd_f64(p, r2, muladd_f64(r, 1.984126950656571e-4, 1.3888888943628945e-3));
    p = muladd_f64(p, r2, muladd_f64(r, 8.333333333494465e-3, 4.166666666653016e-2));
    p = muladd_f64(p, r2, muladd_f64(r, 0.16666666666666413, 0.5000000000000011));
    return muladd_f64(p, r2, r) + 1.0;
}

/* e to the power x = n ln(2) + r: 2^n times a polynomial in r (Cody and Waite); within 1.1 ulp */
INLINED double exp_f64(double x)
{
    x = x < -1418.0 ? -1418.0 : x; /* n = -2046: both factors are 0, and no product underflows, which takes long */
    x = x > 710.0 ? 710.0 : x;
    /* n is rounded to a whole number by 1.5 * 2^52, and has 2 * 1023 added */
    const double shifted = muladd_f64(x, 1.4426950408889634, 6755399441057790.0);
    const double n = shifted - 6755399441057790.0;
    const double r = muladd_f64(n, -1.90821492927058770002e-10, muladd_f64(n, -6.93147180369123816490e-1, x));
    const double p = power_f64(r);
    const uint64_t bits = bits_of_f64(shifted), half = bits >> 1; /* 2^n may be no double: two factors */
    return p * f64_of_bits(half << 52) * f64_of_bits((bits - half) << 52);
}

/* natural logarithm of x = 2^n (1 + f), 1 + f from sqrt(1/2) to sqrt(2): that of fdlibm; within 1 ulp */
INLINED double ln_f64(double x)
{
    const double factor = x < 0x1p-1022 ? 0x1p54 : 1.0; /* for subnormal numbers */
    const double lift = x < 0x1p-1022 ? 1078.0 : 1024.0;
    const uint64_t bits = bits_of_f64(x * factor) - 0x3fe6a09e667f3bcdu; /* less those of sqrt(1/2) */
    const uint64_t exponent = (bits + 0x4000000000000000u) >> 52; /* n + 1024 */
    const double n = f64_of_bits(exponent | 0x4330000000000000u) - 0x1p52 - lift;
    const double f = f64_of_bits((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    const double s = f / (f + 2.0);
    const double z = s * s, h = f * f * 0.5;
    double p = muladd_f64(z, 1.479819860511658591e-1, 1.531383769920937332e-1);
    p = muladd_f64(p, z, 1.818357216161805012e-1);
    p = muladd_f64(p, z, 2.222219843214978396e-1);
    p = muladd_f64(p, z, 2.857142874366239149e-1);
    p = muladd_f64(p, z, 3.999999999940941908e-1);
    p = muladd_f64(p, z, 6.666666666666735130e-1);
    p = muladd_f64(n, 1.90821492927058770002e-10, s * muladd_f64(p, z, h));
    /* what turns the finite number above into the result for 0, negative numbers, infinity and NaN */
    const double below = x < 0.0 ? NAN : -INFINITY;
    const double above = x < INFINITY ? 0.0 : x;
    return muladd_f64(n, 6.93147180369123816490e-1, f - (h - p)) + (x <= 0.0 ? below : above);
}

/* hyperbolic tangent: x + x^3 P / Q below 0.625 (Cephes), from there 1 - 2 / (e^2x + 1); within 1.4 ulp */
INLINED double tanh_f64(double x)
{
    const uint64_t sign = bits_of_f64(x) & 0x8000000000000000u;
    const double a = f64_of_bits(bits_of_f64(x) ^ sign);
    const double z = a * a;
    double p = muladd_f64(z, -9.64399179425052238628e-1, -9.92877231001918586564e1);
    p = muladd_f64(p, z, -1.61468768441708447952e3) * z * a;
    double q = z + 1.12811678491632931402e2;
    q = muladd_f64(muladd_f64(q, z, 2.23548839060100448583e3), z, 4.84406305325125486048e3);
    const double b = a > 19.1 ? 19.1 : a; /* from there on it is 1 */
    const double shifted = muladd_f64(b, 2.8853900817779268, 6755399441056767.0); /* as in exp; 1023 for below */
    const double n = shifted - 6755399441056767.0;
    const double r = muladd_f64(n, -1.90821492927058770002e-10, muladd_f64(n, -6.93147180369123816490e-1, b + b));
    const double e = power_f64(r) * f64_of_bits(bits_of_f64(shifted) << 52);
    p = a < 0.625 ? p : -2.0;
    q = a < 0.625 ? q : e + 1.0;
    const double start = a < 0.625 ? a : 1.0;
    return f64_of_bits(bits_of_f64(p / q + start) | sign);
}

#endif
