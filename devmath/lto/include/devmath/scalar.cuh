// Narrow floating point as storage, and conversion between all element types.
//
//   Half        IEEE binary16
//   BFloat16    the upper half of a float
//   Float8E4M3  4 bits of exponent, 3 of fraction: no infinities, one NaN of each sign, at most 448
//   Float8E5M2  the upper half of a Half, at most 57344
//
// Arithmetic is done in float. A conversion rounds to nearest, ties to even. To 8 bits it saturates as the instruction
// does, and cuBLASLt where it stores: what is too large, infinity too, becomes the largest finite number of its sign;
// NaN stays NaN.
#pragma once

#include "complex.cuh"

namespace devmath {

struct alignas(2) Half { u16 bits; };
struct alignas(2) BFloat16 { u16 bits; };
struct Float8E4M3 { u8 bits; };
struct Float8E5M2 { u8 bits; };

#if DEVMATH_ON_GPU
DEVMATH_DEVICE u32 float_bits(float x) { return __float_as_uint(x); }
DEVMATH_DEVICE float bits_float(u32 x) { return __uint_as_float(x); }

DEVMATH_DEVICE float widen(Half x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
DEVMATH_DEVICE Half narrow(float x, Half*) {
  Half y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
DEVMATH_DEVICE float widen(BFloat16 x) { return bits_float((u32)x.bits << 16); }
DEVMATH_DEVICE BFloat16 narrow(float x, BFloat16*) {
  BFloat16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
#else
/// Bits of a float, and back, without aliasing.
inline u32 float_bits(float x) { u32 y; __builtin_memcpy(&y, &x, 4); return y; }
inline float bits_float(u32 x) { float y; __builtin_memcpy(&y, &x, 4); return y; }

inline float widen(Half x) { _Float16 y; __builtin_memcpy(&y, &x.bits, 2); return (float)y; }
inline Half narrow(float x, Half*) { _Float16 y = (_Float16)x; Half z; __builtin_memcpy(&z.bits, &y, 2); return z; }
inline float widen(BFloat16 x) { return bits_float((u32)x.bits << 16); }
inline BFloat16 narrow(float x, BFloat16*) {
  const u32 bits = float_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {(u16)(bits >> 16 | 0x40)};  // NaN stays NaN
  return {(u16)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};                   // half of the last place, ties to even
}
#endif

DEVMATH_DEVICE float widen(Float8E5M2 x) { return widen(Half{(u16)(x.bits << 8)}); }

#if DEVMATH_ON_GPU && __CUDA_ARCH__ >= 890

DEVMATH_DEVICE float widen(Float8E4M3 x) {
  u32 pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((u16)x.bits));
  return widen(Half{(u16)pair});
}
DEVMATH_DEVICE Float8E4M3 narrow(float x, Float8E4M3*) {
  u16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return {(u8)pair};
}
DEVMATH_DEVICE Float8E5M2 narrow(float x, Float8E5M2*) {
  u16 pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  return {(u8)pair};
}

#else

DEVMATH_DEVICE float widen(Float8E4M3 x) {
  const u32 sign = (u32)(x.bits & 0x80) << 24, magnitude = x.bits & 0x7f;
  if (magnitude == 0x7f) return bits_float(sign | 0x7fffffffu);
  // As the exponent and fraction of a float the number is 2^120 times too small: so far apart are the biases.
  return bits_float(sign | magnitude << 20) * 0x1p120f;
}

/// Bits of x in a format of kFraction bits of fraction and exponents biased by kBias; kLargest for what is too large.
template <int kFraction, int kBias, u32 kLargest>
DEVMATH_DEVICE u8 float8_bits(float x) {
  const u32 bits = float_bits(x), magnitude = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
  if (magnitude > 0x7f800000u) return (u8)(sign | 0x7fu);
  constexpr int dropped = 23 - kFraction;  // bits of a float's fraction
  u32 rounded;
  if (magnitude >> 23 > 127 - kBias) {
    const u32 to_even = (magnitude >> dropped & 1) + (1u << (dropped - 1)) - 1;
    rounded = ((magnitude + to_even) >> dropped) - ((127 - kBias) << kFraction);
  } else {
    // A subnormal number counts units; the addition leaves that count in the last bits, rounded.
    constexpr u32 unit_bits = (u32)(127 + 1 - kBias + dropped) << 23;
    rounded = float_bits(bits_float(magnitude) + bits_float(unit_bits)) - unit_bits;
  }
  return (u8)(sign | (rounded < kLargest ? rounded : kLargest));
}
DEVMATH_DEVICE Float8E4M3 narrow(float x, Float8E4M3*) { return {float8_bits<3, 7, 0x7e>(x)}; }
DEVMATH_DEVICE Float8E5M2 narrow(float x, Float8E5M2*) { return {float8_bits<2, 15, 0x7b>(x)}; }

#endif

/// x as a float, rounded to odd: toward zero, then the last bit set where that was inexact. Rounding the result to 16
/// bits or 8 equals rounding x itself, as a float has more than two bits to spare (Boldo and Melquiond, 2008).
DEVMATH_DEVICE float round_to_odd(double x) {
  const float nearest = (float)x;
  if (nearest == x) return nearest;
  const bool away_from_zero = fabs((double)nearest) > fabs(x);
  return bits_float((float_bits(nearest) - (away_from_zero ? 1 : 0)) | 1);
}

template <typename A, typename B> struct IsSame { static constexpr bool value = false; };
template <typename A> struct IsSame<A, A> { static constexpr bool value = true; };

template <typename T> struct IsNarrow { static constexpr bool value = false; };
template <> struct IsNarrow<Half> { static constexpr bool value = true; };
template <> struct IsNarrow<BFloat16> { static constexpr bool value = true; };
template <> struct IsNarrow<Float8E4M3> { static constexpr bool value = true; };
template <> struct IsNarrow<Float8E5M2> { static constexpr bool value = true; };

template <typename T> struct IsComplex { static constexpr bool value = false; };
template <typename Real> struct IsComplex<Complex<Real>> { static constexpr bool value = true; };
template <typename T> struct IsComplex<const T> : IsComplex<T> {};

/// x as a To, rounded once; real to complex has imaginary part 0. Complex to real does not compile.
template <typename To, typename From>
DEVMATH_DEVICE To convert(From x) {
  if constexpr (IsSame<To, From>::value) {
    return x;
  } else if constexpr (IsComplex<To>::value && IsComplex<From>::value) {
    using Real = decltype(To{}.re);
    return To{(Real)x.re, (Real)x.im};
  } else if constexpr (IsComplex<To>::value) {
    using Real = decltype(To{}.re);
    return To{convert<Real>(x), Real(0)};
  } else if constexpr (IsNarrow<From>::value) {
    return convert<To>(widen(x));
  } else if constexpr (IsNarrow<To>::value && (IsSame<From, double>::value || IsSame<From, int>::value)) {
    return narrow(round_to_odd(x), (To*)nullptr);
  } else if constexpr (IsNarrow<To>::value) {
    return narrow((float)x, (To*)nullptr);
  } else {
    return (To)x;
  }
}

/// The same in memory.
template <typename From, typename To>
DEVMATH_DEVICE void convert_element(const void* source, void* destination) {
  *(To*)destination = convert<To>(*(const From*)source);
}

}  // namespace devmath
