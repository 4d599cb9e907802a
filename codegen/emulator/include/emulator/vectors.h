// Vector types of CUDA C++, with the alignment of CUDA's own.
#pragma once

#define EMULATOR_VECTOR1(T, name, align) \
  struct alignas(align) name##1 { T x; }; \
  static inline name##1 make_##name##1(T x) { return {x}; }
#define EMULATOR_VECTOR2(T, name, align) \
  struct alignas(align) name##2 { T x, y; }; \
  static inline name##2 make_##name##2(T x, T y) { return {x, y}; }
#define EMULATOR_VECTOR3(T, name, align) \
  struct alignas(align) name##3 { T x, y, z; }; \
  static inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }
#define EMULATOR_VECTOR4(T, name, align) \
  struct alignas(align) name##4 { T x, y, z, w; }; \
  static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
#define EMULATOR_VECTORS(T, name, align1, align2, align4) \
  EMULATOR_VECTOR1(T, name, align1) \
  EMULATOR_VECTOR2(T, name, align2) \
  EMULATOR_VECTOR3(T, name, align1) \
  EMULATOR_VECTOR4(T, name, align4)

EMULATOR_VECTORS(signed char, char, 1, 2, 4)
EMULATOR_VECTORS(unsigned char, uchar, 1, 2, 4)
EMULATOR_VECTORS(short, short, 2, 4, 8)
EMULATOR_VECTORS(unsigned short, ushort, 2, 4, 8)
EMULATOR_VECTORS(int, int, 4, 8, 16)
EMULATOR_VECTORS(unsigned, uint, 4, 8, 16)
EMULATOR_VECTORS(long long, longlong, 8, 16, 16)
EMULATOR_VECTORS(unsigned long long, ulonglong, 8, 16, 16)
EMULATOR_VECTORS(float, float, 4, 8, 16)
EMULATOR_VECTORS(double, double, 8, 16, 16)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  operator uint3() const { return {x, y, z}; }
};
