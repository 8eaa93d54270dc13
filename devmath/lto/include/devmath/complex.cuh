// Complex numbers in the memory layout of NumPy's complex64 and complex128.
#pragma once

#include "platform.cuh"

namespace devmath {

/// re + i im, aligned so that one is one 8- or 16-byte access.
template <typename Real>
struct alignas(2 * sizeof(Real)) Complex {
  Real re, im;
};

template <typename Real>
DEVMATH_DEVICE Complex<Real> operator+(Complex<Real> a, Complex<Real> b) { return {a.re + b.re, a.im + b.im}; }

template <typename Real>
DEVMATH_DEVICE Complex<Real> operator-(Complex<Real> a, Complex<Real> b) { return {a.re - b.re, a.im - b.im}; }

template <typename Real>
DEVMATH_DEVICE Complex<Real> operator*(Complex<Real> a, Complex<Real> b) {
  return {fused_multiply_add(a.re, b.re, -(a.im * b.im)), fused_multiply_add(a.re, b.im, a.im * b.re)};
}

/// The complex conjugate where kConjugates; a negated operand of a multiply-add costs nothing.
template <bool kConjugates, typename Real>
DEVMATH_DEVICE Complex<Real> conjugate_if(Complex<Real> a) { return {a.re, kConjugates ? -a.im : a.im}; }
template <bool kConjugates, typename Real>
DEVMATH_DEVICE Real conjugate_if(Real a) { return a; }

/// a * b + c in four fused operations.
template <typename Real>
DEVMATH_DEVICE Complex<Real> fused_multiply_add(Complex<Real> a, Complex<Real> b, Complex<Real> c) {
  return {fused_multiply_add(-a.im, b.im, fused_multiply_add(a.re, b.re, c.re)),
          fused_multiply_add(a.im, b.re, fused_multiply_add(a.re, b.im, c.im))};
}

}  // namespace devmath
