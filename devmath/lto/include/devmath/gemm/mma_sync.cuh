// Block GEMM on tensor cores by warp-wide mma.sync (sm_80 and later), of operands of 16 bits or 8: float16, bfloat16
// and float8 with float sums, int8 and uint8 with int sums.
//
// ldmatrix reads 8x8 matrices of 16-bit elements whose rows lie along the lines of the tile; where k runs across the
// lines it transposes on the way. Tiles are swizzled or padded so that the eight 16-byte rows of a matrix are in
// different banks. Elements of 8 bits move in pairs along k, so there k must run along the lines.
//
// Past the extents ldmatrix reads what memory holds there. Rows and columns of that kind end in accumulators that
// nobody keeps; values past k are set to zero in both operands, since NaN * 0 is NaN.
#pragma once

#include "../mma.cuh"
#include "warp_tile.cuh"

namespace devmath {

DEVMATH_DEVICE u32 element_bits(i8 x) { return (u8)x; }
DEVMATH_DEVICE u32 element_bits(u8 x) { return x; }
template <typename Narrow>
DEVMATH_DEVICE u32 element_bits(Narrow x) { return x.bits; }

/// kMatrices 8x8 matrices of an operand as mma.sync takes them: register q holds 2 neighbours along k of one outer
/// index, or 4 of 8 bits, where
///   A (four: 16 outer x k_step)    outer half q % 2, k half q / 2
///   B (two a block of 8 columns)   outer half q / 2, k half q % 2
template <typename Operand, bool kIsA, int kMatrices>
struct MmaFragment {
  using Layout = typename Operand::Layout;
  static constexpr int item_bytes = sizeof(typename Operand::Element);
  static constexpr int k_half_step = 16 / item_bytes, k_step = 2 * k_half_step;
  static constexpr int in_register = 4 / item_bytes;  // elements
  static_assert(Layout::is_plain || Operand::k_contiguous || item_bytes == 2, "MmaFragment: ldmatrix moves 16 bits");

  DEVMATH_DEVICE static int outer_half(int q) { return kIsA ? q % 2 : q / 2; }
  DEVMATH_DEVICE static int k_half(int q) { return kIsA ? q / 2 : q % 2; }

  /// Address of the row that a lane names to ldmatrix: row lane % 8 of matrix lane / 8. `block` and `k` are multiples
  /// of 8, and a swizzle repeats every 8 lines: the step between lines is outside of it, where it is a constant.
  DEVMATH_DEVICE static SmemAddress row_of_lane(const Operand& operand, int outer, int block, int k, int lane) {
    const int matrix = lane / 8 % kMatrices, line = lane % 8;
    outer += 8 * outer_half(matrix);
    const int half = k_half_step * k_half(matrix);
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
      const int q_outer = outer + lane / 4 + 8 * outer_half(q);
      const int q_k = k + lane % 4 * in_register + k_half_step * k_half(q);
      rmem[q] = 0;
      DEVMATH_UNROLL
      for (int i = 0; i < in_register; ++i) {
        rmem[q] |= element_bits(operand.clamped(q_outer, q_k + i)) << (8 * item_bytes * i);
      }
    }
  }

  /// Fragment at (outer + block, k), of kDepth <= k_step values of k; zeros past them.
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
        const int valid = kDepth - (lane % 4 * in_register + k_half_step * k_half(q));
        rmem[q] &= valid >= in_register ? 0xffffffffu : valid <= 0 ? 0u : (1u << (8 * item_bytes * valid)) - 1;
      }
    }
  }
};

/// m16n8k16 on 16-bit elements, m16n8k32 on 8-bit ones.
template <int kItemBytes>
struct MmaSync {
  struct RowBlock { u32 rmem[4]; };
  struct ColBlock { u32 rmem[2]; };
  static constexpr int k_step = 32 / kItemBytes;

  template <int kBlocks, int kDepth, typename OperandA>
  DEVMATH_DEVICE static void load_a(RowBlock* blocks, const OperandA& a, int row, int k, int lane) {
    DEVMATH_UNROLL
    for (int i = 0; i < kBlocks; ++i) {
      MmaFragment<OperandA, true, 4>::template load<kDepth>(blocks[i].rmem, a, row, 16 * i, k, lane);
    }
  }

  template <int kBlocks, int, typename FragmentOfA, typename Element>
  DEVMATH_DEVICE static void load_a(RowBlock* blocks, const RegisterOperand<FragmentOfA, Element>& a, int row, int k,
                                    int lane) {
    static_assert(kItemBytes == 2, "MmaSync: accumulators lie as operands of 16 bits do");
    DEVMATH_UNROLL
    for (int i = 0; i < kBlocks; ++i) a.pack(blocks[i].rmem, row + 16 * i, k, lane);
  }

  /// One ldmatrix serves two blocks.
  template <int kBlocks, int kDepth, typename OperandB>
  DEVMATH_DEVICE static void load_b(ColBlock* blocks, const OperandB& b, int col, int k, int lane) {
    static_assert(kBlocks == 1 || kBlocks % 2 == 0, "MmaSync: column blocks are loaded in pairs");
    constexpr int together = kBlocks == 1 ? 1 : 2;
    DEVMATH_UNROLL
    for (int j = 0; j < kBlocks; j += together) {
      u32 rmem[2 * together];
      MmaFragment<OperandB, false, 2 * together>::template load<kDepth>(rmem, b, col, 8 * j, k, lane);
      DEVMATH_UNROLL
      for (int q = 0; q < 2 * together; ++q) blocks[j + q / 2].rmem[q % 2] = rmem[q];
    }
  }

  template <int, typename Sum, typename A, typename B>
  DEVMATH_DEVICE static void multiply(Sum* d, const RowBlock& a, const ColBlock& b, A of_a, B of_b) {
    static_assert(sizeof(A) == kItemBytes && sizeof(B) == kItemBytes, "MmaSync: elements of another size");
    if constexpr (kItemBytes == 2) {
      mma_m16n8k16(d, a.rmem, b.rmem, of_a);
    } else {
      mma_m16n8k32(d, a.rmem, b.rmem, of_a, of_b);
    }
  }
};

/// kColBlocks is 1 or even. Up to 128 instructions an iteration, so that loads run ahead of the multiplies.
template <typename Fragment, int kRowBlocks, int kColBlocks, int kItemBytes = 2>
using MmaSyncBlock = WarpTileBlock<Fragment, kRowBlocks, kColBlocks, MmaSync<kItemBytes>,
                                   kRowBlocks * kColBlocks < 8 ? 16 : 128 / (kRowBlocks * kColBlocks)>;

}  // namespace devmath
