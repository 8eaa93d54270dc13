// Single complex values to and from global memory, each with the cache hint its use asks for.
//
//   load_once, store_once   a value that passes once: not kept in L1, first to leave L2
//   load_twiddle            a table entry, kept in L1 and loaded where it stands
//
// None of the loads is .nc. A kernel may work in place; and a .nc load may move across barriers, so the compiler would
// hoist all table loads, or keep one transform's twiddles for the next: 72 to 229 registers a thread in place of 37 to
// 96, and spills where two transforms share a kernel.
#pragma once

#include "../complex.cuh"

namespace devmath::fft {

#if DEVMATH_ON_GPU
DEVMATH_DEVICE Complex<float> load_once(const Complex<float>* gmem) {
  Complex<float> z;
  asm volatile("ld.global.L1::no_allocate.v2.f32 {%0, %1}, [%2];" : "=f"(z.re), "=f"(z.im) : "l"(gmem) : "memory");
  return z;
}
DEVMATH_DEVICE Complex<double> load_once(const Complex<double>* gmem) {
  Complex<double> z;
  asm volatile("ld.global.L1::no_allocate.v2.f64 {%0, %1}, [%2];" : "=d"(z.re), "=d"(z.im) : "l"(gmem) : "memory");
  return z;
}
DEVMATH_DEVICE void store_once(Complex<float>* gmem, Complex<float> z) {
  asm volatile("st.global.cs.v2.f32 [%0], {%1, %2};" ::"l"(gmem), "f"(z.re), "f"(z.im) : "memory");
}
DEVMATH_DEVICE void store_once(Complex<double>* gmem, Complex<double> z) {
  asm volatile("st.global.cs.v2.f64 [%0], {%1, %2};" ::"l"(gmem), "d"(z.re), "d"(z.im) : "memory");
}
DEVMATH_DEVICE Complex<float> load_twiddle(const Complex<float>* gmem) {
  Complex<float> z;
  asm volatile("ld.global.v2.f32 {%0, %1}, [%2];" : "=f"(z.re), "=f"(z.im) : "l"(gmem) : "memory");
  return z;
}
DEVMATH_DEVICE Complex<double> load_twiddle(const Complex<double>* gmem) {
  Complex<double> z;
  asm volatile("ld.global.v2.f64 {%0, %1}, [%2];" : "=d"(z.re), "=d"(z.im) : "l"(gmem) : "memory");
  return z;
}
#else
template <typename Real>
DEVMATH_DEVICE Complex<Real> load_once(const Complex<Real>* gmem) { return *gmem; }
template <typename Real>
DEVMATH_DEVICE void store_once(Complex<Real>* gmem, Complex<Real> z) { *gmem = z; }
template <typename Real>
DEVMATH_DEVICE Complex<Real> load_twiddle(const Complex<Real>* gmem) { return *gmem; }
#endif

}  // namespace devmath::fft
