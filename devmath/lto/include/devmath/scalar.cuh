// 16-bit floating point as storage: Half (IEEE binary16) and BFloat16, and conversion between all element types.
//
// Arithmetic is done in float. A conversion to 16 bits rounds to nearest, ties to even.
#pragma once

#include "complex.cuh"

namespace devmath {

struct alignas(2) Half { u16 bits; };
struct alignas(2) BFloat16 { u16 bits; };

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

/// x as a float, rounded to odd: toward zero, then the last bit set where that was inexact. Rounding the result to 16
/// bits equals rounding x itself, as a float has more than two bits to spare (Boldo and Melquiond, 2008).
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
  } else if constexpr (IsNarrow<To>::value && IsSame<From, double>::value) {
    return narrow(round_to_odd(x), (To*)nullptr);
  } else if constexpr (IsNarrow<To>::value) {
    return narrow((float)x, (To*)nullptr);
  } else {
    return (To)x;
  }
}

}  // namespace devmath
