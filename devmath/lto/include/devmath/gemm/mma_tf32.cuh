// Block GEMM of float operands on tensor cores (sm_80 and later), which multiply tf32: float's range, 11 bits of
// precision: they do not look at the low 13 bits.
//
//   one term      x x', as tensor cores read them: what they leave out of an operand is below 2^-10 of it
//   three terms   small big' + big small', then big big': x = big + small + rest, with big = x rounded to tf32,
//                 small = x - big cut to tf32, |rest| <= 2^-23 |x|. What is left out, small small' and the rests, is
//                 below 2^-21 of a product; the worst case of one multiply-add in float is 2^-24 of the running sum.
// Tensor cores cut low bits of what they accumulate. With three terms they sum up to 16 values of k from zero, and an
// IEEE addition takes that to the running sum.
//
// Infinities and NaN of the operands give those of the product big big': where they make small terms NaN, by
// inf - inf or inf * 0, those count as zero. Differences from float with one term: NaN whose high 10 bits of fraction
// are zero, which no arithmetic makes, counts as infinite. With three: |x| above (2 - 2^-11) 2^127 counts as infinite,
// and what small has below 2^-136, the least tf32, is lost.
//
// Values past k are set to zero in both operands, since NaN * 0 is NaN.
#pragma once

#include "../mma.cuh"
#include "warp_tile.cuh"

namespace devmath {

/// Bits of kHalves * 8 outer indices: rmem[kHalves * j + h] has outer index lane / 4 + 8 h and k = lane % 4 + 4 j.
///   k-contiguous operand    ldmatrix: eight outer indices, 16 bytes of k of each, are a matrix of its own
///   the other order         one float at a time, 32 bytes of each of four lines, an odd number of 32 bytes long
template <typename Operand, int kHalves>
struct Tf32Fragment {
  using Layout = typename Operand::Layout;

  /// Registers [first, first + kMatrices): one matrix each. Lane l names row l % 8 of matrix l / 8; `block` is a
  /// multiple of 8, the number of lines after which a swizzle repeats.
  template <int kMatrices>
  DEVMATH_DEVICE static void load_matrices(u32* rmem, int first, const Operand& operand, int outer, int block, int k,
                                           int lane) {
    const int matrix = first + lane / 8 % kMatrices;
    const int lane_outer = outer + matrix % kHalves * 8 + lane % 8, lane_k = k + matrix / kHalves * 4;
    const SmemAddress row = smem_address(operand.at(lane_outer, lane_k) + block * Layout::ld);
    if constexpr (kMatrices == 4) {
      ldmatrix_x4<false>(rmem + first, row);
    } else {
      ldmatrix_x2<false>(rmem + first, row);
    }
  }

  DEVMATH_DEVICE static float load_element(const Operand& operand, int outer, int k, int block, int depth) {
    if constexpr (Layout::is_plain) {
      return operand.clamped(outer + block, k + depth);
    } else {
      return operand.at(outer, k)[Operand::distance(block, depth)];
    }
  }

  /// Fragment at (outer + block, k), of kDepth <= 16 values of k; zeros past them.
  template <int kDepth>
  DEVMATH_DEVICE static void load(u32* rmem, const Operand& operand, int outer, int block, int k, int lane) {
    constexpr int registers = kHalves * (kDepth > 8 ? 4 : 2);
    if constexpr (Operand::k_contiguous && !Layout::is_plain) {
      constexpr int together = registers < 4 ? registers : 4;
      DEVMATH_UNROLL
      for (int q = 0; q < registers; q += together) {
        load_matrices<together>(rmem, q, operand, outer, block, k, lane);
      }
    } else {
      DEVMATH_UNROLL
      for (int q = 0; q < registers; ++q) {
        const int q_block = block + q % kHalves * 8, q_depth = q / kHalves * 4;
        rmem[q] = float_bits(load_element(operand, outer + lane / 4, k + lane % 4, q_block, q_depth));
      }
    }
    if constexpr (kDepth % 8 != 0) {
      DEVMATH_UNROLL
      for (int q = 0; q < registers; ++q) rmem[q] = q / kHalves * 4 + lane % 4 < kDepth ? rmem[q] : 0;
    }
  }
};

/// kTerms is 1 or 3; kStep is 8 or 16 values of k.
template <int kTerms, int kStep>
struct MmaTf32 {
  static_assert(kTerms == 1 || kTerms == 3, "MmaTf32: products have one term or three");
  static constexpr int k_step = kStep;

  template <int kRegisters>
  struct Parts {
    u32 big[kRegisters], small[kTerms == 3 ? kRegisters : 1];

    template <typename Fragment, int kDepth, typename Operand>
    DEVMATH_DEVICE void load(const Operand& operand, int outer, int block, int k, int lane) {
      u32 rmem[kRegisters];
      Fragment::template load<kDepth>(rmem, operand, outer, block, k, lane);
      DEVMATH_UNROLL
      for (int q = 0; q < (kDepth > 8 ? kRegisters : kRegisters / 2); ++q) {
        big[q] = rmem[q];
        if constexpr (kTerms == 3) {
          big[q] = round_to_tf32(bits_float(rmem[q]));
          small[q] = float_bits(bits_float(rmem[q]) - bits_float(big[q]));
        }
      }
    }
  };
  using RowBlock = Parts<8>;
  using ColBlock = Parts<4>;

  template <int kBlocks, int kDepth, typename OperandA>
  DEVMATH_DEVICE static void load_a(RowBlock* blocks, const OperandA& a, int row, int k, int lane) {
    DEVMATH_UNROLL
    for (int i = 0; i < kBlocks; ++i) {
      blocks[i].template load<Tf32Fragment<OperandA, 2>, kDepth>(a, row, 16 * i, k, lane);
    }
  }

  template <int kBlocks, int kDepth, typename OperandB>
  DEVMATH_DEVICE static void load_b(ColBlock* blocks, const OperandB& b, int col, int k, int lane) {
    DEVMATH_UNROLL
    for (int j = 0; j < kBlocks; ++j) {
      blocks[j].template load<Tf32Fragment<OperandB, 1>, kDepth>(b, col, 8 * j, k, lane);
    }
  }

  /// d += a b, of 8 or 16 values of k.
  template <int kDepth>
  DEVMATH_DEVICE static void multiply_parts(float* d, const u32* a, const u32* b) {
    mma_m16n8k8_tf32(d, a, b);
    if constexpr (kDepth > 8) mma_m16n8k8_tf32(d, a + 4, b + 2);
  }

  template <int kDepth>
  DEVMATH_DEVICE static void multiply(float* d, const RowBlock& a, const ColBlock& b, float, float) {
    if constexpr (kTerms == 1) {
      multiply_parts<kDepth>(d, a.big, b.big);
    } else {
      float sums[4] = {};
      multiply_parts<kDepth>(sums, a.small, b.big);
      multiply_parts<kDepth>(sums, a.big, b.small);
      DEVMATH_UNROLL
      for (int q = 0; q < 4; ++q) sums[q] = sums[q] == sums[q] ? sums[q] : 0.0f;
      multiply_parts<kDepth>(sums, a.big, b.big);
      DEVMATH_UNROLL
      for (int q = 0; q < 4; ++q) d[q] += sums[q];
    }
  }
};

template <typename Fragment, int kRowBlocks, int kColBlocks, int kTerms, int kStep, int kUnroll>
using MmaTf32Block = WarpTileBlock<Fragment, kRowBlocks, kColBlocks, MmaTf32<kTerms, kStep>, kUnroll>;

}  // namespace devmath
