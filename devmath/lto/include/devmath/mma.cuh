// Tensor-core instructions of a warp, from sm_80 on: mma.sync, and ldmatrix, which feeds it.
//
// D (16 x 8) += A (16 x K) B (K x 8). With group = lane / 4, member = lane % 4 and pair = 2 member:
//   D  d0..d3: row group + 8 (q / 2), column pair + q % 2
// 16-bit elements, two a register, K = 16, float accumulators:
//   A  a0..a3: rows group + 8 (q % 2), columns pair, pair + 1 of column half q / 2
//   B  b0, b1: column group, rows pair, pair + 1 of row half q
// 8-bit elements, four a register, K = 32, int accumulators for integers, float ones for float8: the same with
// columns, and rows, 2 pair .. 2 pair + 3
// tf32 (K = 8, float accumulators) and double (K = 8 or 16), one element a register:
//   A  a0, ..: row group + 8 (q % 2), column member + 4 (q / 2)
//   B  b0, ..: column group, row member + 4 q
//
// Where there is no GPU these are declarations only: whoever emulates a warp defines them.
#pragma once

#include "scalar.cuh"

// Whether mma.sync multiplies float8; where not, it multiplies halves. On 9.0 and 10.0 ptxas would turn each instruction
// into products of halves by itself, and needs so many registers for it that most tiles spill.
#ifndef DEVMATH_HAS_FLOAT8_MMA
#if DEVMATH_ON_GPU
#define DEVMATH_HAS_FLOAT8_MMA (__CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200)
#else
#define DEVMATH_HAS_FLOAT8_MMA 1
#endif
#endif

namespace devmath {

#if DEVMATH_ON_GPU

/// An address in the shared window; PTX takes these where C++ has generic pointers.
typedef u32 SmemAddress;

DEVMATH_DEVICE SmemAddress smem_address(const void* smem) { return (u32)__cvta_generic_to_shared(smem); }

/// Four 8x8 matrices of 16-bit elements: lane l passes the 16-byte row l % 8 of matrix l / 8, and register q receives
/// elements (lane / 4, 2 (lane % 4) + {0, 1}) of matrix q, or of its transpose.
template <bool kTranspose>
DEVMATH_DEVICE void ldmatrix_x4(u32* rmem, SmemAddress row) {
  if constexpr (kTranspose) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(rmem[0]), "=r"(rmem[1]), "=r"(rmem[2]), "=r"(rmem[3]) : "r"(row) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(rmem[0]), "=r"(rmem[1]), "=r"(rmem[2]), "=r"(rmem[3]) : "r"(row) : "memory");
  }
}

/// Two matrices; the rows that lanes 16 to 31 pass are ignored.
template <bool kTranspose>
DEVMATH_DEVICE void ldmatrix_x2(u32* rmem, SmemAddress row) {
  if constexpr (kTranspose) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(rmem[0]), "=r"(rmem[1]) : "r"(row) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(rmem[0]), "=r"(rmem[1]) : "r"(row) : "memory");
  }
}

DEVMATH_DEVICE void mma_m16n8k16(float* d, const u32* a, const u32* b, Half) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

DEVMATH_DEVICE void mma_m16n8k16(float* d, const u32* a, const u32* b, BFloat16) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Sums in halves: d0, d1 in one register, d2, d3 in another. Copies by bytes, as halves need not lie at whole words.
DEVMATH_DEVICE void mma_m16n8k16(Half* d, const u32* a, const u32* b, Half) {
  u32 sums[2];
  copy_bytes<8>(sums, d);
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
      : "+r"(sums[0]), "+r"(sums[1]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  copy_bytes<8>(d, sums);
}

/// Sums of type Sum ("+r" or "+f") of products of A and B, in the names of PTX.
#define DEVMATH_MMA_M16N8K32(Sum, constraint, sum_name, A, a_name, B, b_name)                                          \
  DEVMATH_DEVICE void mma_m16n8k32(Sum* d, const u32* a, const u32* b, A, B) {                                         \
    asm("mma.sync.aligned.m16n8k32.row.col." sum_name "." a_name "." b_name "." sum_name                               \
        " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                                       \
        : constraint(d[0]), constraint(d[1]), constraint(d[2]), constraint(d[3])                                       \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                           \
  }
DEVMATH_MMA_M16N8K32(int, "+r", "s32", i8, "s8", i8, "s8")
DEVMATH_MMA_M16N8K32(int, "+r", "s32", i8, "s8", u8, "u8")
DEVMATH_MMA_M16N8K32(int, "+r", "s32", u8, "u8", i8, "s8")
DEVMATH_MMA_M16N8K32(int, "+r", "s32", u8, "u8", u8, "u8")
#if DEVMATH_HAS_FLOAT8_MMA
/// Sums in float and in halves.
#define DEVMATH_MMA_FLOAT8(A, a_name, B, b_name)                                                                       \
  DEVMATH_MMA_M16N8K32(float, "+f", "f32", A, a_name, B, b_name)                                                       \
  DEVMATH_DEVICE void mma_m16n8k32(Half* d, const u32* a, const u32* b, A, B) {                                        \
    u32 sums[2];                                                                                                       \
    copy_bytes<8>(sums, d);                                                                                            \
    asm("mma.sync.aligned.m16n8k32.row.col.f16." a_name "." b_name ".f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"    \
        : "+r"(sums[0]), "+r"(sums[1]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));            \
    copy_bytes<8>(d, sums);                                                                                            \
  }
DEVMATH_MMA_FLOAT8(Float8E4M3, "e4m3", Float8E4M3, "e4m3")
DEVMATH_MMA_FLOAT8(Float8E4M3, "e4m3", Float8E5M2, "e5m2")
DEVMATH_MMA_FLOAT8(Float8E5M2, "e5m2", Float8E4M3, "e4m3")
DEVMATH_MMA_FLOAT8(Float8E5M2, "e5m2", Float8E5M2, "e5m2")
#undef DEVMATH_MMA_FLOAT8
#endif
#undef DEVMATH_MMA_M16N8K32

/// x rounded to tf32, a float with 10 bits of fraction: to nearest, ties away from zero.
DEVMATH_DEVICE u32 round_to_tf32(float x) {
  u32 y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}

DEVMATH_DEVICE void mma_m16n8k8_tf32(float* d, const u32* a, const u32* b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#if __CUDA_ARCH__ >= 900

DEVMATH_DEVICE void mma_m16n8k8(double* d, const double* a, const double* b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

DEVMATH_DEVICE void mma_m16n8k16(double* d, const double* a, const double* b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, "
      "{%12,%13,%14,%15}, {%0,%1,%2,%3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]),
        "d"(b[2]), "d"(b[3]));
}

#else

/// The same from m8n8k4, the only shape below sm_90: four values of k and eight rows at a time.
DEVMATH_DEVICE void mma_m16n8k8(double* d, const double* a, const double* b) {
  DEVMATH_UNROLL
  for (int q = 0; q < 4; ++q) {
    const int half = q % 2 * 2;
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(d[half]), "+d"(d[half + 1]) : "d"(a[q]), "d"(b[q / 2]));
  }
}

DEVMATH_DEVICE void mma_m16n8k16(double* d, const double* a, const double* b) {
  mma_m16n8k8(d, a, b);
  mma_m16n8k8(d, a + 4, b + 2);
}

#endif

#else

typedef const char* SmemAddress;

inline SmemAddress smem_address(const void* smem) { return (const char*)smem; }
template <bool kTranspose> void ldmatrix_x4(u32* rmem, SmemAddress row);
template <bool kTranspose> void ldmatrix_x2(u32* rmem, SmemAddress row);
void mma_m16n8k16(float* d, const u32* a, const u32* b, Half);
void mma_m16n8k16(float* d, const u32* a, const u32* b, BFloat16);
void mma_m16n8k16(Half* d, const u32* a, const u32* b, Half);
template <typename A, typename B> void mma_m16n8k32(int* d, const u32* a, const u32* b, A, B);
#if DEVMATH_HAS_FLOAT8_MMA
template <typename Sum, typename A, typename B> void mma_m16n8k32(Sum* d, const u32* a, const u32* b, A, B);
#endif
void mma_m16n8k8_tf32(float* d, const u32* a, const u32* b);
void mma_m16n8k8(double* d, const double* a, const double* b);
void mma_m16n8k16(double* d, const double* a, const double* b);

inline u32 round_to_tf32(float x) {
  const u32 bits = float_bits(x);
  // An infinity and NaN stay what they are.
  return ((bits & 0x7fffffffu) < 0x7f800000u ? bits + 0x1000u : bits) & 0xffffe000u;
}

#endif

#if !DEVMATH_HAS_FLOAT8_MMA

/// Both halves of x multiplied by 2^8.
DEVMATH_DEVICE u32 scale_halves(u32 x) {
#if DEVMATH_ON_GPU
  u32 y;
  asm("mul.f16x2 %0, %1, %2;" : "=r"(y) : "r"(x), "r"(0x5c005c00u));
  return y;
#else
  Half* const none = nullptr;
  const Half low = narrow(256 * widen(Half{(u16)x}), none), high = narrow(256 * widen(Half{(u16)(x >> 16)}), none);
  return low.bits | (u32)high.bits << 16;
#endif
}

/// Elements first and first + 2 of four float8 numbers as two halves, which hold each exactly.
DEVMATH_DEVICE u32 float8_halves(u32 x, int first, Float8E5M2) { return (first == 0 ? x << 8 : x) & 0xff00ff00u; }
DEVMATH_DEVICE u32 float8_halves(u32 x, int first, Float8E4M3) {
  x = first == 0 ? x : x >> 8;
  const u32 sign = (x & 0x00800080u) << 8, magnitude = x & 0x007f007fu;
  // In the place of a half's exponent and fraction a magnitude is 2^8 times too small: so far apart are the biases.
  // NaN is the magnitude 0x7f; one more carries into bit 7, and 0xf8 times that is a whole exponent of ones.
  const u32 nan = ((magnitude + 0x00010001u) & 0x00800080u) * 0xf8u;
  return sign | scale_halves(magnitude << 7) | nan;
}

/// The same as two products of halves. Which value of k is in which of them does not matter: it is so in A and in B.
template <typename Sum, typename A, typename B>
DEVMATH_DEVICE void mma_m16n8k32(Sum* d, const u32* a, const u32* b, A of_a, B of_b) {
  DEVMATH_UNROLL
  for (int half = 0; half < 2; ++half) {
    const u32 half_a[4] = {float8_halves(a[2 * half], 0, of_a), float8_halves(a[2 * half + 1], 0, of_a),
                           float8_halves(a[2 * half], 1, of_a), float8_halves(a[2 * half + 1], 1, of_a)};
    const u32 half_b[2] = {float8_halves(b[half], 0, of_b), float8_halves(b[half], 1, of_b)};
    mma_m16n8k16(d, half_a, half_b, Half());
  }
}

#endif

}  // namespace devmath
