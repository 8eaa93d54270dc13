// Block GEMM on tensor cores by warpgroup-wide wgmma (sm_90a), whatever the types of the elements.
//
// In a pass a warpgroup (128 threads) multiplies 64 rows by kN columns, k in steps of 32 bytes. The instruction reads A
// and B from shared memory by itself: tiles are panels of 32, 64 or 128 bytes with the swizzle of just that width, from
// a multiple of 8 such widths on. 16-bit elements may lie in either order, k runs along the lines of all others. k is a
// multiple of a step: values past it cannot be masked.
//
// Past the extents it reads the tile's surplus lines, or the rest of its last panel; such rows and columns end in
// accumulators that nobody keeps.
//
// A call waits for its own products. Writes to A and B by ordinary stores or cp.async come before a
// fence.proxy.async of the threads that wrote, which is the caller's business like the barrier is.
//
// An accumulator of wgmma is also one of mma.sync with one block of rows: operands that no descriptor can describe,
// arrays of the user's own, are multiplied by that.
#pragma once

#include "../wgmma.cuh"
#include "block.cuh"
#include "register_operand.cuh"

namespace devmath {

/// An operand in a tile as the instruction sees it, 32 bytes of k at a time.
template <typename Operand>
struct WgmmaOperand {
  using Layout = typename Operand::Layout;
  static constexpr int item_bytes = sizeof(typename Operand::Element), k_step = 32 / item_bytes;
  static constexpr int line_bytes = Layout::ld * item_bytes;
  static constexpr int panel_bytes = Layout::lines_allocated * line_bytes;
  static constexpr int is_mn_major = !Operand::k_contiguous;
  static_assert(Layout::swizzle * 16 == line_bytes, "WgmmaOperand: a line, or a panel of it, must be one swizzle wide");
  static_assert(Layout::lines_allocated % 8 == 0, "WgmmaOperand: a panel must be whole atoms of 8 lines");
  static_assert(Operand::k_extent % k_step == 0, "WgmmaOperand: k must be a multiple of 32 bytes");
  static_assert(item_bytes == 2 || !is_mn_major, "WgmmaOperand: k must run along the lines");

  /// From outer index `outer` and k = 0 on; that is the start of an atom.
  DEVMATH_DEVICE static MatrixDescriptor first(const Operand& operand, int outer) {
    // K-major instructions ignore the leading bytes; PTX wants 16 there.
    return MatrixDescriptor(smem_address(operand.at(outer, 0)), is_mn_major ? panel_bytes : 16, 8 * line_bytes,
                            Layout::swizzle);
  }

  /// Bytes from k = 0 to `k`, a multiple of the step.
  DEVMATH_DEVICE static constexpr int distance_bytes(int k) {
    return is_mn_major ? k * line_bytes : k / Layout::ld * panel_bytes + k % Layout::ld * item_bytes;
  }
};

/// A pass of 64 rows by kN columns a warpgroup. PlainBlock<Fragment, kColBlocks> multiplies arrays of the user's own by
/// mma.sync, with one block of rows and kColBlocks of columns a warp.
template <typename FragmentOfPasses, int kN, template <typename, int> class PlainBlock>
struct WgmmaPass {
  using Fragment = FragmentOfPasses;
  static constexpr int size = kN / 2;
  static constexpr int row_run = 1, col_run = 2, row_stride = 2;

  /// First row, or column, of the warpgroup's part of a pass; of some other part where it starts past the edge.
  template <typename OperandA>
  DEVMATH_DEVICE static int first_row(const OperandA& a, int first, int rank) {
    return a.inside(Fragment::row((u32)rank / 128 * 128, first));
  }
  template <typename OperandB>
  DEVMATH_DEVICE static int first_col(const OperandB& b, int first, int rank) {
    return b.inside(Fragment::col((u32)rank / 128 * 128, first));
  }

  template <typename Sum>
  DEVMATH_DEVICE static void pin(Sum* sums) {
    DEVMATH_UNROLL
    for (int i = 0; i < size; ++i) pin_register(sums[i]);
  }

  template <typename Sum, typename OperandA, typename OperandB>
  DEVMATH_DEVICE static void multiply_plain(Sum* sums, int first, int rank, const OperandA& a, const OperandB& b) {
    using Part = PlainBlock<Fragment, kN % 64 == 0 ? 8 : kN % 32 == 0 ? 4 : kN % 16 == 0 ? 2 : 1>;
    DEVMATH_UNROLL
    for (int i = 0; i < size; i += Part::size) Part::accumulate(sums + i, first + i, rank, a, b);
  }
};

/// Both operands from shared memory.
template <typename Fragment, int kN, template <typename, int> class PlainBlock>
struct WgmmaTileBlock : WgmmaPass<Fragment, kN, PlainBlock> {
  using Pass = WgmmaPass<Fragment, kN, PlainBlock>;

  template <typename Sum, typename OperandA, typename OperandB>
  DEVMATH_DEVICE static void multiply_tiles(Sum* sums, int first, int rank, const OperandA& a, const OperandB& b) {
    using TileA = WgmmaOperand<OperandA>;
    using TileB = WgmmaOperand<OperandB>;
    using Instruction = Wgmma<kN, typename OperandA::Element, typename OperandB::Element>;
    const auto start_a = TileA::first(a, Pass::first_row(a, first, rank));
    const auto start_b = TileB::first(b, Pass::first_col(b, first, rank));
    Pass::pin(sums);
    wgmma_fence();
    DEVMATH_UNROLL
    for (int k = 0; k < OperandA::k_extent; k += TileA::k_step) {
      Instruction::template multiply<TileA::is_mn_major, TileB::is_mn_major>(
          sums, start_a.advanced(TileA::distance_bytes(k)), start_b.advanced(TileB::distance_bytes(k)), true);
    }
    wgmma_wait();
    Pass::pin(sums);
  }

  /// A in registers, all of it before the first instruction.
  template <typename Sum, typename FragmentOfA, typename Element, typename OperandB>
  DEVMATH_DEVICE static void accumulate(Sum* sums, int first, int rank,
                                        const RegisterOperand<FragmentOfA, Element>& a, const OperandB& b) {
    if constexpr (OperandB::Layout::is_plain) {
      Pass::multiply_plain(sums, first, rank, a, b);
    } else {
      using TileB = WgmmaOperand<OperandB>;
      using Instruction = Wgmma<kN, Element, typename OperandB::Element>;
      constexpr int k_step = TileB::k_step, steps = OperandB::k_extent / k_step;
      const auto start_b = TileB::first(b, Pass::first_col(b, first, rank));
      u32 rmem_a[4 * steps];
      DEVMATH_UNROLL
      for (int s = 0; s < steps; ++s) a.pack(rmem_a + 4 * s, Fragment::row(0, first), s * k_step, (u32)rank % 32);
      DEVMATH_UNROLL
      for (int i = 0; i < 4 * steps; ++i) pin_register(rmem_a[i]);
      Pass::pin(sums);
      wgmma_fence();
      DEVMATH_UNROLL
      for (int s = 0; s < steps; ++s) {
        Instruction::template multiply_registers<TileB::is_mn_major>(
            sums, rmem_a + 4 * s, start_b.advanced(TileB::distance_bytes(s * k_step)), true);
      }
      wgmma_wait();
      Pass::pin(sums);
      DEVMATH_UNROLL
      for (int i = 0; i < 4 * steps; ++i) pin_register(rmem_a[i]);
    }
  }

  template <typename Sum, typename OperandA, typename OperandB>
  DEVMATH_DEVICE static void accumulate(Sum* sums, int first, int rank, const OperandA& a, const OperandB& b) {
    if constexpr (OperandA::Layout::is_plain || OperandB::Layout::is_plain) {
      Pass::multiply_plain(sums, first, rank, a, b);
    } else {
      multiply_tiles(sums, first, rank, a, b);
    }
  }
};

}  // namespace devmath
