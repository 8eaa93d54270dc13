// Block GEMM on tensor cores by warpgroup-wide wgmma (sm_90a): float16 or bfloat16 operands, float sums.
//
// In a pass a warpgroup (128 threads) multiplies 64 rows by kN columns, k in steps of 16. The instruction reads A and B
// from shared memory by itself, each in either order: tiles are panels of 32, 64 or 128 bytes with the swizzle of just
// that width, from a multiple of 8 such widths on. k is a multiple of 16: values past it cannot be masked.
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
#include "mma_sync.cuh"

namespace devmath {

/// An operand in a tile as the instruction sees it, 16 values of k at a time.
template <typename Operand>
struct WgmmaOperand {
  using Layout = typename Operand::Layout;
  static constexpr int item_bytes = sizeof(typename Operand::Element);
  static constexpr int line_bytes = Layout::ld * item_bytes;
  static constexpr int panel_bytes = Layout::lines_allocated * line_bytes;
  static constexpr int is_mn_major = !Operand::k_contiguous;
  static_assert(Layout::swizzle * 16 == line_bytes, "WgmmaOperand: a line, or a panel of it, must be one swizzle wide");
  static_assert(Layout::lines_allocated % 8 == 0, "WgmmaOperand: a panel must be whole atoms of 8 lines");
  static_assert(Operand::k_extent % 16 == 0, "WgmmaOperand: k must be a multiple of 16");

  /// From outer index `outer` and k = 0 on; that is the start of an atom.
  DEVMATH_DEVICE static MatrixDescriptor first(const Operand& operand, int outer) {
    // K-major instructions ignore the leading bytes; PTX wants 16 there.
    return MatrixDescriptor(smem_address(operand.at(outer, 0)), is_mn_major ? panel_bytes : 16, 8 * line_bytes,
                            Layout::swizzle);
  }

  /// Bytes from k = 0 to `k`, a multiple of 16.
  DEVMATH_DEVICE static constexpr int distance_bytes(int k) {
    return is_mn_major ? k * line_bytes : k / Layout::ld * panel_bytes + k % Layout::ld * item_bytes;
  }
};

/// 64 rows by kN columns a warpgroup and pass.
template <typename FragmentOfPasses, int kN>
struct WgmmaBlock {
  using Fragment = FragmentOfPasses;
  static constexpr int size = kN / 2;
  static constexpr int row_run = 1, col_run = 2, row_stride = 2;
  static constexpr int k_step = 16, warpgroup = 128;

  template <typename OperandA, typename OperandB>
  DEVMATH_DEVICE static void multiply_tiles(float* sums, int first, int rank, const OperandA& a, const OperandB& b) {
    using TileA = WgmmaOperand<OperandA>;
    using TileB = WgmmaOperand<OperandB>;
    const int leader = (u32)rank / warpgroup * warpgroup;
    const auto start_a = TileA::first(a, a.inside(Fragment::row(leader, first)));
    const auto start_b = TileB::first(b, b.inside(Fragment::col(leader, first)));
    DEVMATH_UNROLL
    for (int i = 0; i < size; ++i) pin_register(sums[i]);
    wgmma_fence();
    DEVMATH_UNROLL
    for (int k = 0; k < OperandA::k_extent; k += k_step) {
      Wgmma<kN>::template multiply<TileA::is_mn_major, TileB::is_mn_major>(
          sums, start_a.advanced(TileA::distance_bytes(k)), start_b.advanced(TileB::distance_bytes(k)),
          typename OperandA::Element());
    }
    wgmma_wait();
    DEVMATH_UNROLL
    for (int i = 0; i < size; ++i) pin_register(sums[i]);
  }

  template <typename OperandA, typename OperandB>
  DEVMATH_DEVICE static void multiply_plain(float* sums, int first, int rank, const OperandA& a, const OperandB& b) {
    constexpr int col_blocks = kN % 64 == 0 ? 8 : kN % 32 == 0 ? 4 : kN % 16 == 0 ? 2 : 1;
    using Part = MmaSyncBlock<Fragment, 1, col_blocks>;
    DEVMATH_UNROLL
    for (int i = 0; i < size; i += Part::size) Part::accumulate(sums + i, first + i, rank, a, b);
  }

  template <typename OperandA, typename OperandB>
  DEVMATH_DEVICE static void accumulate(float* sums, int first, int rank, const OperandA& a, const OperandB& b) {
    if constexpr (OperandA::Layout::is_plain || OperandB::Layout::is_plain) {
      multiply_plain(sums, first, rank, a, b);
    } else {
      multiply_tiles(sums, first, rank, a, b);
    }
  }
};

}  // namespace devmath
