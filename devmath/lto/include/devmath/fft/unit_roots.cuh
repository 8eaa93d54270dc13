// Roots of unity as compile-time constants: exp(-2 pi i k / n).
#pragma once

#include "../complex.cuh"

namespace devmath::fft {

/// Sum of the first terms of x - x^3/3! + x^5/5! - ...; the rest is below 2^-60 for |x| <= pi/4.
DEVMATH_CONSTEXPR double taylor_sin(double x) {
  double sum = 0;
  for (int i = 19; i > 1; i -= 2) sum = -(sum + 1) * x * x / (i * (i - 1));
  return x + x * sum;
}

/// Sum of the first terms of 1 - x^2/2! + x^4/4! - ...
DEVMATH_CONSTEXPR double taylor_cos(double x) {
  double sum = 0;
  for (int i = 20; i > 0; i -= 2) sum = -(sum + 1) * x * x / (i * (i - 1));
  return 1 + sum;
}

/// exp(-2 pi i k / n) for 0 <= k <= n / 4, from the nearer end of that quarter: the angle is at most pi/4, where the
/// series converge fast.
DEVMATH_CONSTEXPR Complex<double> unit_root(int k, int n) {
  const double two_pi = 6.283185307179586476925286766559;
  if (8 * k <= n) return {taylor_cos(two_pi * k / n), -taylor_sin(two_pi * k / n)};
  const double below_quarter = two_pi * (n - 4 * k) / (4.0 * n);
  return {taylor_sin(below_quarter), -taylor_cos(below_quarter)};
}

/// exp(-2 pi i k / n) for k = 0 .. kCount-1, kCount <= n / 4 or 1.
template <typename Real, int kCount>
struct UnitRoots {
  Complex<Real> values[kCount];

  DEVMATH_CONSTEXPR explicit UnitRoots(int n) : values{} {
    for (int k = 0; k < kCount; ++k) values[k] = {(Real)unit_root(k, n).re, (Real)unit_root(k, n).im};
  }
};

}  // namespace devmath::fft
