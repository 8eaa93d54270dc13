// A warp's share of a block GEMM on tensor cores: kRowBlocks x kColBlocks blocks of 16 x 8 outputs a pass. Every block
// of A and B in registers serves a whole row, or column, of blocks of C.
//
// What differs between element types is an Instruction:
//   k_step                 values of k that are loaded together, and multiplied
//   RowBlock, ColBlock     what a lane holds of 16 rows of A, or of 8 columns of B, and of k_step values of k
//   load_a, load_b         kBlocks of them, from (outer, k) on; zeros for what lies past kDepth values of k. Where A
//                          is in registers its outer index is counted from that of register 0
//   multiply               d[0..4) += RowBlock x ColBlock, of which kDepth values of k count; elements tell the types
// All of them leave d[q] with row lane / 4 + 8 (q / 2) and column 2 (lane % 4) + q % 2 of the block.
#pragma once

#include "block.cuh"
#include "register_operand.cuh"

namespace devmath {

/// kUnroll steps of k an iteration: the more, the further loads run ahead, and the more registers they take.
template <typename FragmentOfPasses, int kRowBlocks, int kColBlocks, typename Instruction, int kUnroll>
struct WarpTileBlock {
  using Fragment = FragmentOfPasses;
  static constexpr int size = kRowBlocks * kColBlocks * 4;
  static constexpr int row_run = 1, col_run = 2, row_stride = 2;
  static constexpr int k_step = Instruction::k_step;

  /// sums[(i * kColBlocks + j) * 4 ..] += block (i, j) of the products over k .. k + kDepth.
  template <int kDepth, typename Accumulator, typename OperandA, typename OperandB>
  DEVMATH_DEVICE static void step(Accumulator* sums, const OperandA& a, int row, const OperandB& b, int col, int k,
                                  int lane) {
    typename Instruction::RowBlock rmem_a[kRowBlocks];
    typename Instruction::ColBlock rmem_b[kColBlocks];
    Instruction::template load_a<kRowBlocks, kDepth>(rmem_a, a, row, k, lane);
    Instruction::template load_b<kColBlocks, kDepth>(rmem_b, b, col, k, lane);
    DEVMATH_UNROLL
    for (int i = 0; i < kRowBlocks; ++i) {
      DEVMATH_UNROLL
      for (int j = 0; j < kColBlocks; ++j) {
        Instruction::template multiply<kDepth>(sums + (i * kColBlocks + j) * 4, rmem_a[i], rmem_b[j],
                                               typename OperandA::Element(), typename OperandB::Element());
      }
    }
  }

  template <typename Accumulator, typename OperandA, typename OperandB>
  DEVMATH_DEVICE static void accumulate(Accumulator* sums, int first, int rank, const OperandA& a, const OperandB& b) {
    constexpr int k_extent = OperandA::k_extent;
    const int lane = (u32)rank % 32;
    const int row = a.inside(Fragment::row(rank - lane, first)), col = b.inside(Fragment::col(rank - lane, first));
#pragma unroll kUnroll
    for (int k = 0; k + k_step <= k_extent; k += k_step) step<k_step>(sums, a, row, b, col, k, lane);
    constexpr int tail = k_extent % k_step;
    if constexpr (tail > 0) step<tail>(sums, a, row, b, col, k_extent - tail, lane);
  }

  /// A in registers: every step of k is written out, so that their numbers are constants.
  template <typename Accumulator, typename FragmentOfA, typename Element, typename OperandB>
  DEVMATH_DEVICE static void accumulate(Accumulator* sums, int first, int rank,
                                        const RegisterOperand<FragmentOfA, Element>& a, const OperandB& b) {
    constexpr int k_extent = OperandB::k_extent, tail = k_extent % k_step;
    const int lane = (u32)rank % 32, row = Fragment::row(0, first);
    const int col = b.inside(Fragment::col(rank - lane, first));
    DEVMATH_UNROLL
    for (int k = 0; k + k_step <= k_extent; k += k_step) step<k_step>(sums, a, row, b, col, k, lane);
    if constexpr (tail > 0) step<tail>(sums, a, row, b, col, k_extent - tail, lane);
  }
};

}  // namespace devmath
