// Block GEMM on tensor cores in double (sm_80 and later). Every product is added by a fused multiply-add: the results
// are those of IEEE 754, in an order of summation of their own.
//
// The sum over k has no order, so a lane may hold any values of k, as long as those of A and B agree: it takes
// k = 2 (lane % 4) + {0, 1} of every eight, which come in one access of 16 bytes where k runs along the lines.
//   k-contiguous operand    8 lanes read 64 bytes of each of two lines, which are an odd number of 64 bytes long
//   the other order         16 lanes read 32 bytes of each of four lines, two apart, an odd number of 16 bytes long
// so that each access reads every bank once. Values past k are set to zero in both operands, since NaN * 0 is NaN.
#pragma once

#include "../mma.cuh"
#include "warp_tile.cuh"

namespace devmath {

/// What a lane holds of kHalves * 8 outer indices: rmem[kHalves * j + h] has outer index lane / 4 + 8 h, and
/// k = 2 (lane % 4) + j % 2 + 8 (j / 2).
template <typename Operand, int kHalves>
struct F64Fragment {
  using Layout = typename Operand::Layout;
  using Pair = Vector<double, 2>;

  /// Two values of k, of the element `block` further on in its operand and `depth` further on in k than (outer, k).
  DEVMATH_DEVICE static Pair load_pair(const Operand& operand, int outer, int k, int block, int depth) {
    if constexpr (Layout::is_plain) {
      return {operand.clamped(outer + block, k + depth), operand.clamped(outer + block, k + depth + 1)};
    } else if constexpr (Operand::k_contiguous) {
      return *(const Pair*)(operand.at(outer, k) + Operand::distance(block, depth));
    } else {
      const double* smem = operand.at(outer, k);
      return {smem[Operand::distance(block, depth)], smem[Operand::distance(block, depth + 1)]};
    }
  }

  template <int kDepth>
  DEVMATH_DEVICE static void load(double* rmem, const Operand& operand, int outer, int block, int k, int lane) {
    const int lane_k = lane % 4 * 2;
    DEVMATH_UNROLL
    for (int depth = 0; depth < kDepth; depth += 8) {
      DEVMATH_UNROLL
      for (int h = 0; h < kHalves; ++h) {
        const Pair pair = load_pair(operand, outer + lane / 4, k + lane_k, block + 8 * h, depth);
        DEVMATH_UNROLL
        for (int e = 0; e < 2; ++e) {
          const bool exists = kDepth % 8 == 0 || lane_k + depth + e < kDepth;
          rmem[kHalves * (depth / 4 + e) + h] = exists ? pair.values[e] : 0.0;
        }
      }
    }
  }
};

/// kStep is 8 or 16 values of k.
template <int kStep>
struct MmaF64 {
  struct RowBlock { double rmem[8]; };
  struct ColBlock { double rmem[4]; };
  static constexpr int k_step = kStep;

  template <int kBlocks, int kDepth, typename OperandA>
  DEVMATH_DEVICE static void load_a(RowBlock* blocks, const OperandA& a, int row, int k, int lane) {
    DEVMATH_UNROLL
    for (int i = 0; i < kBlocks; ++i) {
      F64Fragment<OperandA, 2>::template load<kDepth>(blocks[i].rmem, a, row, 16 * i, k, lane);
    }
  }

  template <int kBlocks, int kDepth, typename FragmentOfA>
  DEVMATH_DEVICE static void load_a(RowBlock* blocks, const RegisterOperand<FragmentOfA, double>& a, int row, int k,
                                    int lane) {
    DEVMATH_UNROLL
    for (int i = 0; i < kBlocks; ++i) {
      DEVMATH_UNROLL
      for (int q = 0; q < (kDepth > 8 ? 8 : 4); ++q) {
        blocks[i].rmem[q] = a.at(row + 16 * i + 8 * (q % 2), k + q / 2 % 2 + 8 * (q / 4), lane);
      }
    }
  }

  template <int kBlocks, int kDepth, typename OperandB>
  DEVMATH_DEVICE static void load_b(ColBlock* blocks, const OperandB& b, int col, int k, int lane) {
    DEVMATH_UNROLL
    for (int j = 0; j < kBlocks; ++j) {
      F64Fragment<OperandB, 1>::template load<kDepth>(blocks[j].rmem, b, col, 8 * j, k, lane);
    }
  }

  template <int kDepth>
  DEVMATH_DEVICE static void multiply(double* d, const RowBlock& a, const ColBlock& b, double, double) {
    if constexpr (kDepth > 8) {
      mma_m16n8k16(d, a.rmem, b.rmem);
    } else {
      mma_m16n8k8(d, a.rmem, b.rmem);
    }
  }
};

template <typename Fragment, int kRowBlocks, int kColBlocks, int kStep, int kUnroll>
using MmaF64Block = WarpTileBlock<Fragment, kRowBlocks, kColBlocks, MmaF64<kStep>, kUnroll>;

}  // namespace devmath
