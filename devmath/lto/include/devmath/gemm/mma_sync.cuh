// Block GEMM on tensor cores by warp-wide mma.sync (sm_80 and later): float16 or bfloat16 operands, float sums.
//
// In a pass a warp multiplies kRowBlocks x kColBlocks blocks of 16 x 8 outputs, k in steps of 16. ldmatrix reads 8x8
// matrices whose rows lie along the lines of the tile; where k runs across the lines it transposes on the way.
// Tiles are swizzled or padded so that the eight 16-byte rows of a matrix are in different banks.
//
// Past the extents ldmatrix reads what memory holds there. Rows and columns of that kind end in accumulators that
// nobody keeps; values past k are set to zero in both operands, since NaN * 0 is NaN.
#pragma once

#include "../mma.cuh"
#include "block.cuh"

namespace devmath {

/// kMatrices 8x8 matrices of an operand as mma.sync takes them: register q holds k, k + 1 of one outer index, where
///   A (four: 16 outer x 16 k)      outer half q % 2, k half q / 2
///   B (two a block of 8 columns)   outer half q / 2, k half q % 2
template <typename Operand, bool kIsA, int kMatrices>
struct MmaFragment {
  using Layout = typename Operand::Layout;
  static constexpr int k_step = 16;

  DEVMATH_DEVICE static int outer_half(int q) { return kIsA ? q % 2 : q / 2; }
  DEVMATH_DEVICE static int k_half(int q) { return kIsA ? q / 2 : q % 2; }

  /// Address of the row that a lane names to ldmatrix: row lane % 8 of matrix lane / 8. `block` and `k` are multiples
  /// of 8, and a swizzle repeats every 8 lines: the step between lines is outside of it, where it is a constant.
  DEVMATH_DEVICE static SmemAddress row_of_lane(const Operand& operand, int outer, int block, int k, int lane) {
    const int matrix = lane / 8 % kMatrices, line = lane % 8;
    outer += 8 * outer_half(matrix);
    const int half = 8 * k_half(matrix);
    const auto* smem = Operand::k_contiguous ? operand.at(outer + line, k + half) + block * Layout::ld
                                             : operand.at(outer + block, half + line) + k * Layout::ld;
    return smem_address(smem);
  }

  /// Whole matrices, by ldmatrix.
  DEVMATH_DEVICE static void load_matrices(u32* rmem, const Operand& operand, int outer, int block, int k, int lane) {
    if constexpr (kMatrices == 4) {
      ldmatrix_x4<!Operand::k_contiguous>(rmem, row_of_lane(operand, outer, block, k, lane));
    } else {
      ldmatrix_x2<!Operand::k_contiguous>(rmem, row_of_lane(operand, outer, block, k, lane));
    }
  }

  /// The same registers, element by element.
  DEVMATH_DEVICE static void load_elements(u32* rmem, const Operand& operand, int outer, int k, int lane) {
    DEVMATH_UNROLL
    for (int q = 0; q < kMatrices; ++q) {
      const int q_outer = outer + lane / 4 + 8 * outer_half(q), q_k = k + lane % 4 * 2 + 8 * k_half(q);
      rmem[q] = operand.clamped(q_outer, q_k).bits | (u32)operand.clamped(q_outer, q_k + 1).bits << 16;
    }
  }

  /// Fragment at (outer + block, k), of kDepth <= 16 values of k; zeros past them.
  template <int kDepth>
  DEVMATH_DEVICE static void load(u32* rmem, const Operand& operand, int outer, int block, int k, int lane) {
    if constexpr (Layout::is_plain) {
      load_elements(rmem, operand, outer + block, k, lane);
    } else {
      load_matrices(rmem, operand, outer, block, k, lane);
    }
    if constexpr (kDepth < k_step) {
      DEVMATH_UNROLL
      for (int q = 0; q < kMatrices; ++q) {
        const int valid = kDepth - (lane % 4 * 2 + 8 * k_half(q));
        rmem[q] &= valid >= 2 ? 0xffffffffu : valid == 1 ? 0xffffu : 0u;
      }
    }
  }
};

/// kRowBlocks x kColBlocks blocks of 16 x 8 a warp and pass; kColBlocks is 1 or even.
template <typename FragmentOfPasses, int kRowBlocks, int kColBlocks>
struct MmaSyncBlock {
  static_assert(kColBlocks == 1 || kColBlocks % 2 == 0, "MmaSyncBlock: column blocks are loaded in pairs");
  using Fragment = FragmentOfPasses;
  static constexpr int size = kRowBlocks * kColBlocks * 4;
  static constexpr int row_run = 1, col_run = 2, row_stride = 2;
  static constexpr int k_step = 16;
  static constexpr int cols_a_load = kColBlocks == 1 ? 1 : 2;  // column blocks that one ldmatrix of B serves

  /// sums[(i * kColBlocks + j) * 4 ..] += block (i, j) of the products over k .. k + kDepth.
  template <int kDepth, typename OperandA, typename OperandB>
  DEVMATH_DEVICE static void step(float* sums, const OperandA& a, int row, const OperandB& b, int col, int k,
                                  int lane) {
    u32 rmem_a[kRowBlocks][4], rmem_b[kColBlocks][2];
    DEVMATH_UNROLL
    for (int i = 0; i < kRowBlocks; ++i) {
      MmaFragment<OperandA, true, 4>::template load<kDepth>(rmem_a[i], a, row, 16 * i, k, lane);
    }
    DEVMATH_UNROLL
    for (int j = 0; j < kColBlocks; j += cols_a_load) {
      MmaFragment<OperandB, false, 2 * cols_a_load>::template load<kDepth>(rmem_b[j], b, col, 8 * j, k, lane);
    }
    DEVMATH_UNROLL
    for (int i = 0; i < kRowBlocks; ++i) {
      DEVMATH_UNROLL
      for (int j = 0; j < kColBlocks; ++j) {
        mma_m16n8k16(sums + (i * kColBlocks + j) * 4, rmem_a[i], rmem_b[j], typename OperandA::Element());
      }
    }
  }

  template <typename OperandA, typename OperandB>
  DEVMATH_DEVICE static void accumulate(float* sums, int first, int rank, const OperandA& a, const OperandB& b) {
    constexpr int k_extent = OperandA::k_extent;
    // Up to 128 instructions an iteration, so that loads of the next steps run ahead of the multiplies.
    constexpr int blocks = kRowBlocks * kColBlocks;
    [[maybe_unused]] constexpr int unroll = blocks < 8 ? 16 : 128 / blocks;
    const int lane = (u32)rank % 32;
    const int row = a.inside(Fragment::row(rank - lane, first)), col = b.inside(Fragment::col(rank - lane, first));
#pragma unroll unroll
    for (int k = 0; k + k_step <= k_extent; k += k_step) step<k_step>(sums, a, row, b, col, k, lane);
    constexpr int tail = k_extent % k_step;
    if constexpr (tail > 0) step<tail>(sums, a, row, b, col, k_extent - tail, lane);
  }
};

}  // namespace devmath
