// Tensor-core instructions of a warp, from sm_80 on: mma.sync on 16-bit operands, and ldmatrix, which feeds it.
//
// D (16 x 8) += A (16 x 16) B (16 x 8), float accumulators. With group = lane / 4 and pair = 2 (lane % 4):
//   A  a0..a3: rows group + 8 (q % 2), columns pair, pair + 1 of column half q / 2      (two elements a register)
//   B  b0, b1: column group, rows pair, pair + 1 of row half q
//   D  d0..d3: row group + 8 (q / 2), column pair + q % 2
//
// Where there is no GPU these are declarations only: whoever emulates a warp defines them.
#pragma once

#include "scalar.cuh"

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

#else

typedef const char* SmemAddress;

inline SmemAddress smem_address(const void* smem) { return (const char*)smem; }
template <bool kTranspose> void ldmatrix_x4(u32* rmem, SmemAddress row);
template <bool kTranspose> void ldmatrix_x2(u32* rmem, SmemAddress row);
void mma_m16n8k16(float* d, const u32* a, const u32* b, Half);
void mma_m16n8k16(float* d, const u32* a, const u32* b, BFloat16);

#endif

}  // namespace devmath
