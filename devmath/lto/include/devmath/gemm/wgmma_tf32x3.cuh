// Block GEMM of float operands on tensor cores by warpgroup-wide wgmma (sm_90a), three products of tf32 a product.
//
// x = big + small, with big = x as tensor cores read it. A's numbers are split in registers, those of B in shared
// memory: its tile serves as the big part, the small one lies behind it. Sums of
//   small big' + big small', then big big'
// over up to 32 values of k start from zero, and an IEEE addition takes them to the running sum, since tensor cores cut
// low bits of what they accumulate.
//
// All cuts are towards zero, which would add up. small has 13 bits, of which tensor cores cut up to 2: on average
// 2^-12 of it. And small small', which is left out, is on average 2^-11.5 of small big'. So small counts
// 1 + 2^-11 times, which makes up for the mean of both. What remains is below 2^-19 of a product, and has either sign.
//
// Infinities and NaN of the operands give those of big big': where they make small terms NaN, by inf - inf or inf * 0,
// those count as zero. |x| above (1 - 2^-21) 2^128 may count as infinite, as small may come out that much too large;
// and what small has below 2^-136, the least tf32, is lost.
//
// There is one barrier in a call, after the first pass has split B. None stands before: a call that starts while others
// still read writes the same numbers again, since B changes only after a barrier of the caller.
#pragma once

#include "mma_tf32.cuh"
#include "wgmma_tile.cuh"

namespace devmath {

#if DEVMATH_ON_GPU
/// Barrier of the block. What its threads wrote is there for wgmma; the result is whether `condition` held for any.
DEVMATH_DEVICE bool publish_to_wgmma(bool condition) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  return __syncthreads_or(condition);
}
DEVMATH_DEVICE bool holds_in_warp(bool condition) { return __any_sync(0xffffffffu, condition); }
#else
// On a CPU the program that runs the threads of a block defines these two.
bool publish_to_wgmma(bool condition);
bool holds_in_warp(bool condition);
#endif

/// The small part of x; NaN where x is not finite.
DEVMATH_DEVICE float small_part(float x) {
  const float rest = x - bits_float(float_bits(x) & 0xffffe000u);
  return rest * (1 + 0x1p-11f);
}

/// What a lane holds of A, of 16 rows a warp and up to 32 values of k: a step of 8 takes four registers.
struct SplitRows {
  static constexpr int depth = 32;
  u32 big[depth / 2], small[depth / 2];

  /// From k on. Returns NaN where a number is not finite, or is so large that it may as well be.
  template <typename OperandA>
  DEVMATH_DEVICE float load(const OperandA& a, int row, int k, int lane) {
    float check = 0;
    DEVMATH_UNROLL
    for (int step = 0; step < depth / 8; ++step) {
      if (k + 8 * step >= OperandA::k_extent) break;
      Tf32Fragment<OperandA, 2>::template load<8>(big + 4 * step, a, row, 0, k + 8 * step, lane);
      DEVMATH_UNROLL
      for (int q = 4 * step; q < 4 * step + 4; q += 2) {
        const float first = small_part(bits_float(big[q])), second = small_part(bits_float(big[q + 1]));
        check = fused_multiply_add(first, second, check);
        small[q] = float_bits(first);
        small[q + 1] = float_bits(second);
      }
    }
    return check;
  }
};

/// Writes this thread's share, of kThreads, of B's small parts. Returns NaN as SplitRows::load does.
template <int kThreads, typename OperandB>
DEVMATH_DEVICE float split_tile(const OperandB& b, int rank) {
  using Layout = typename OperandB::Layout;
  using Chunk = Vector<float, 4>;
  constexpr int chunks = Layout::elements_allocated / 4, line_chunks = Layout::ld / 4;
  const Chunk* const whole = (const Chunk*)b.smem;
  Chunk* const small = (Chunk*)b.smem + chunks;
  float check = 0;
  DEVMATH_UNROLL
  for (int first = 0; first < chunks; first += kThreads) {
    const int i = first + rank;
    // Lines past the tile are nobody's numbers.
    const bool is_tile = Layout::lines == Layout::lines_allocated ||
                         (u32)i / line_chunks % Layout::lines_allocated < Layout::lines;
    if ((chunks % kThreads == 0 || i < chunks) && is_tile) {
      Chunk chunk = whole[i];
      DEVMATH_UNROLL
      for (int q = 0; q < 4; ++q) chunk.values[q] = small_part(chunk.values[q]);
      check = fused_multiply_add(chunk.values[0], chunk.values[1], check);
      check = fused_multiply_add(chunk.values[2], chunk.values[3], check);
      small[i] = chunk;
    }
  }
  return check;
}

template <typename Fragment, int kColBlocks>
using PlainMmaTf32x3Block = MmaTf32Block<Fragment, 1, kColBlocks, 3, 8, 1>;

/// A from registers, B from shared memory, in a block of kThreads.
template <typename Fragment, int kN, int kThreads>
struct WgmmaTf32x3Block : WgmmaPass<Fragment, kN, PlainMmaTf32x3Block> {
  using Pass = WgmmaPass<Fragment, kN, PlainMmaTf32x3Block>;
  static constexpr int size = Pass::size;

  /// parts (+)= A B for one part of each, from k on, of what SplitRows holds of A.
  template <typename OperandB>
  DEVMATH_DEVICE static void issue(float* parts, const u32* rmem_a, MatrixDescriptor first_b, int k, bool adds) {
    DEVMATH_UNROLL
    for (int step = 0; step < SplitRows::depth / 8; ++step) {
      if (k + 8 * step >= OperandB::k_extent) break;
      const MatrixDescriptor b = first_b.advanced(WgmmaOperand<OperandB>::distance_bytes(k + 8 * step));
      Wgmma<kN, float, float>::template multiply_registers<0>(parts, rmem_a + 4 * step, b, adds || step > 0);
    }
  }

  template <typename OperandB>
  DEVMATH_DEVICE static void multiply_rows(float* sums, const SplitRows& rows, MatrixDescriptor first_b, int k,
                                           bool is_special) {
    const MatrixDescriptor first_small = first_b.advanced(OperandB::Layout::elements_allocated * sizeof(float));
    float parts[size];
    wgmma_fence();
    issue<OperandB>(parts, rows.small, first_b, k, false);
    issue<OperandB>(parts, rows.big, first_small, k, true);
    wgmma_wait();
    Pass::pin(parts);
    if (is_special) {
      DEVMATH_UNROLL
      for (int i = 0; i < size; ++i) parts[i] = parts[i] == parts[i] ? parts[i] : 0.0f;
    }
    Pass::pin(parts);
    wgmma_fence();
    issue<OperandB>(parts, rows.big, first_b, k, true);
    wgmma_wait();
    Pass::pin(parts);
    DEVMATH_UNROLL
    for (int i = 0; i < size; ++i) sums[i] += parts[i];
  }

  template <typename OperandA, typename OperandB>
  DEVMATH_DEVICE static void multiply_tiles(float* sums, int first, int rank, const OperandA& a, const OperandB& b) {
    const int lane = (u32)rank % 32, row = Pass::first_row(a, first, rank) + (u32)rank % 128 / 32 * 16;
    const MatrixDescriptor first_b = WgmmaOperand<OperandB>::first(b, Pass::first_col(b, first, rank));
    SplitRows rows;
    float check_a = rows.load(a, row, 0, lane);
    bool is_special_b = true;  // the first pass splits B for all; whether it is finite is not known to the others
    if (first == 0) {
      const float check_b = split_tile<kThreads>(b, rank);
      is_special_b = publish_to_wgmma(check_b != check_b);
    }
    DEVMATH_UNROLL
    for (int k = 0; k < OperandA::k_extent; k += SplitRows::depth) {
      if (k > 0) check_a = rows.load(a, row, k, lane);
      multiply_rows<OperandB>(sums, rows, first_b, k, holds_in_warp(is_special_b || check_a != check_a));
    }
  }

  template <typename OperandA, typename OperandB>
  DEVMATH_DEVICE static void accumulate(float* sums, int first, int rank, const OperandA& a, const OperandB& b) {
    if constexpr (OperandA::Layout::is_plain || OperandB::Layout::is_plain) {
      Pass::multiply_plain(sums, first, rank, a, b);
    } else {
      multiply_tiles(sums, first, rank, a, b);
    }
  }
};

}  // namespace devmath
