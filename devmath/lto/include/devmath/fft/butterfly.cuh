// The DFT of R points in registers, with the twiddles of its Cooley-Tukey stage folded in:
//
//   y[k] = sum_r  x[r] w^r exp(-2 pi i r k / R),   k = 0 .. R-1,   R a power of two, w any number
//
// Decimation in time: the DFTs of the even and of the odd inputs, of length L/2 each, join to one of length L by
//
//   (a, b) -> (a + z b, a - z b),   z = w^(R/L) exp(-2 pi i k / L),   k = 0 .. L/2-1.
//
// The stage's twiddles only change the constants z, so multiplying by them costs nothing beyond log2(R) table
// entries w^(R/2), w^(R/4), ..., w: a pair takes six fused operations with them and without.
#pragma once

#include "unit_roots.cuh"

namespace devmath::fft {

DEVMATH_CONSTEXPR int log2(int n) { return n < 2 ? 0 : 1 + log2(n / 2); }

template <typename Real>
DEVMATH_DEVICE Complex<Real> times_minus_i(Complex<Real> z) { return {z.im, -z.re}; }

/// (a, b) -> (a + b, a - b).
template <typename Real>
DEVMATH_DEVICE void join(Complex<Real>& a, Complex<Real>& b) {
  const Complex<Real> difference = a - b;
  a = a + b;
  b = difference;
}

/// (a, b) -> (a + z b, a - z b): four fused operations for the sum, and 2 a - sum for the difference.
template <typename Real>
DEVMATH_DEVICE void join(Complex<Real>& a, Complex<Real>& b, Complex<Real> z) {
  const Complex<Real> sum = fused_multiply_add(b, z, a);
  b = {fused_multiply_add(Real(2), a.re, -sum.re), fused_multiply_add(Real(2), a.im, -sum.im)};
  a = sum;
}

/// Joins y[0 .. L/2-1] and y[L/2 .. L-1] to the DFT of length L; w is w^(R/L). Pairs k and k + L/4 share one z,
/// because exp(-2 pi i (k + L/4) / L) = -i exp(-2 pi i k / L).
template <int kLength, bool kTwiddled, typename Real>
DEVMATH_DEVICE void join_halves(Complex<Real>* y, Complex<Real> w) {
  constexpr int kHalf = kLength / 2, kQuarter = kLength >= 4 ? kLength / 4 : 1;
  constexpr UnitRoots<Real, kQuarter> roots(kLength);

  DEVMATH_UNROLL
  for (int k = 0; k < kQuarter; ++k) {
    Complex<Real>*even = y + k, *odd = even + kHalf;
    if (k == 0 && !kTwiddled) {
      join(even[0], odd[0]);
      if constexpr (kLength >= 4) {
        odd[kQuarter] = times_minus_i(odd[kQuarter]);
        join(even[kQuarter], odd[kQuarter]);
      }
    } else {
      const Complex<Real> z = k == 0 ? w : kTwiddled ? w * roots.values[k] : roots.values[k];
      join(even[0], odd[0], z);
      if constexpr (kLength >= 4) join(even[kQuarter], odd[kQuarter], times_minus_i(z));
    }
  }
}

/// y[0 .. R-1] = DFT of x[0], x[stride], ..., x[(R-1) stride], input r times w^r. level_twiddles[l] = w^(R / 2^(l+1))
/// for l = 0 .. log2(R)-1, of no effect unless kTwiddled. x and y must not overlap.
template <int kRadix, int kStride, bool kTwiddled, typename Real>
DEVMATH_DEVICE void butterfly(const Complex<Real>* x, Complex<Real>* y, const Complex<Real>* level_twiddles) {
  static_assert(kRadix > 0 && (kRadix & (kRadix - 1)) == 0, "butterfly: the radix must be a power of two");
  if constexpr (kRadix == 1) {
    y[0] = x[0];
  } else {
    butterfly<kRadix / 2, 2 * kStride, kTwiddled>(x, y, level_twiddles);
    butterfly<kRadix / 2, 2 * kStride, kTwiddled>(x + kStride, y + kRadix / 2, level_twiddles);
    join_halves<kRadix, kTwiddled>(y, level_twiddles[log2(kRadix) - 1]);
  }
}

}  // namespace devmath::fft
