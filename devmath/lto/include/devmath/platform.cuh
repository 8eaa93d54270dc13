// What every devmath header stands on: the function qualifiers, and integer types without an #include.
//
// The arithmetic headers also compile as plain C++17 (g++), where the tests run the threads of a block one after
// another. DEVMATH_ON_GPU separates what only a GPU has: barriers, PTX, special registers.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define DEVMATH_ON_GPU 1
#define DEVMATH_DEVICE __device__ __forceinline__
#define DEVMATH_CONSTEXPR __host__ __device__ constexpr
#define DEVMATH_UNROLL _Pragma("unroll")
#else
#include <cmath>
#define DEVMATH_ON_GPU 0
#define DEVMATH_DEVICE inline
#define DEVMATH_CONSTEXPR constexpr
#define DEVMATH_UNROLL
#endif

namespace devmath {

typedef signed char i8;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

DEVMATH_DEVICE float fused_multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
DEVMATH_DEVICE double fused_multiply_add(double a, double b, double c) { return fma(a, b, c); }
/// Integers wrap around.
DEVMATH_DEVICE int fused_multiply_add(int a, int b, int c) { return (int)((u32)a * (u32)b + (u32)c); }

/// Bytes from anywhere to anywhere, whatever they are; registers to registers cost nothing.
template <int kBytes>
DEVMATH_DEVICE void copy_bytes(void* to, const void* from) {
#if DEVMATH_ON_GPU
  memcpy(to, from, kBytes);
#else
  __builtin_memcpy(to, from, kBytes);
#endif
}

DEVMATH_CONSTEXPR int divide_up(int a, int b) { return (a + b - 1) / b; }

#if DEVMATH_ON_GPU
/// Rank of the calling thread in its block, whatever the block's shape; x runs fastest.
DEVMATH_DEVICE int block_rank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
#endif

}  // namespace devmath
