// Block GEMM on the FMA units: float32, float64, complex64, complex128, with the arithmetic of IEEE 754.
//
// A thread multiplies kRows rows of A by kCols columns of B in a pass, one outer product a step of k, out of registers:
// per element of k it reads kRows + kCols elements of shared memory for kRows * kCols fused multiply-adds.
//
// Every read of a typed tile moves 16 bytes where it can:
//   k-contiguous operand    16 bytes along k, serving several steps; the outer indices of neighbouring threads are
//                           neighbours, whose lines start in different banks (lines are an odd number of 16 bytes)
//   the other order         a group of outer indices at one k; neighbouring threads read neighbouring groups
#pragma once

#include "block.cuh"

namespace devmath {

/// The outer indices of accumulators, counted from the first: rows are kCols registers apart, columns one.
template <typename Fragment, int kCols>
struct RowsOfBlock {
  DEVMATH_DEVICE static int at(int r) { return Fragment::row(0, r * kCols); }
};
template <typename Fragment>
struct ColsOfBlock {
  DEVMATH_DEVICE static int at(int c) { return Fragment::col(0, c); }
};

/// What one thread holds of an operand: kCount outer indices, `depth` values of k each.
template <typename Operand, typename Outer, int kCount, int kGroup>
struct Panel {
  using Element = typename Operand::Element;
  using Layout = typename Operand::Layout;
  static constexpr int depth = Operand::k_contiguous ? Layout::chunk_length : 1;  // values of k in one access

  /// Elements (first + Outer, k .. k + kDepth) into rmem[kDepth][kCount]. The caller uses those inside the extents.
  template <int kDepth>
  DEVMATH_DEVICE static void load(Element (*rmem)[kCount], const Operand& operand, int first, int k) {
    if constexpr (Layout::is_plain) {
      DEVMATH_UNROLL
      for (int d = 0; d < kDepth; ++d) {
        DEVMATH_UNROLL
        for (int i = 0; i < kCount; ++i) rmem[d][i] = operand.clamped(first + Outer::at(i), k + d);
      }
    } else if constexpr (Operand::k_contiguous) {
      // One address, and constants that fit the instructions: LLVM would keep an index register for every load.
      const Element* smem = operand.at(first, k);
      DEVMATH_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const auto along_k = *(const Vector<Element, depth>*)(smem + Operand::distance(Outer::at(i), 0));
        DEVMATH_UNROLL
        for (int d = 0; d < kDepth; ++d) rmem[d][i] = along_k.values[d];
      }
    } else {
      const Element* smem = operand.at(first, k);
      DEVMATH_UNROLL
      for (int d = 0; d < kDepth; ++d) {
        DEVMATH_UNROLL
        for (int i = 0; i < kCount; i += kGroup) {
          const auto group = *(const Vector<Element, kGroup>*)(smem + Operand::distance(Outer::at(i), d));
          DEVMATH_UNROLL
          for (int g = 0; g < kGroup; ++g) rmem[d][i + g] = group.values[g];
        }
      }
    }
  }
};

/// kRows x kCols outputs a thread and pass; groups of kRowGroup rows and kColGroup columns are neighbours in C.
template <typename FragmentOfPasses, int kRows, int kCols, int kRowGroup, int kColGroup, bool kConjA, bool kConjB>
struct FmaBlock {
  using Fragment = FragmentOfPasses;
  static constexpr int size = kRows * kCols;
  static constexpr int row_run = kRowGroup, col_run = kColGroup, row_stride = kCols;

  template <typename OperandA> using PanelA = Panel<OperandA, RowsOfBlock<Fragment, kCols>, kRows, kRowGroup>;
  template <typename OperandB> using PanelB = Panel<OperandB, ColsOfBlock<Fragment>, kCols, kColGroup>;

  /// sums[r * kCols + c] += the products over k .. k + kDepth.
  template <int kDepth, typename OperandA, typename OperandB, typename Element>
  DEVMATH_DEVICE static void step(Element* sums, const OperandA& a, int row, const OperandB& b, int col, int k) {
    Element rmem_a[kDepth][kRows], rmem_b[kDepth][kCols];
    PanelA<OperandA>::template load<kDepth>(rmem_a, a, row, k);
    PanelB<OperandB>::template load<kDepth>(rmem_b, b, col, k);
    DEVMATH_UNROLL
    for (int d = 0; d < kDepth; ++d) {
      DEVMATH_UNROLL
      for (int r = 0; r < kRows; ++r) {
        DEVMATH_UNROLL
        for (int c = 0; c < kCols; ++c) {
          sums[r * kCols + c] = fused_multiply_add(conjugate_if<kConjA>(rmem_a[d][r]),
                                                   conjugate_if<kConjB>(rmem_b[d][c]), sums[r * kCols + c]);
        }
      }
    }
  }

  template <typename OperandA, typename OperandB, typename Element>
  DEVMATH_DEVICE static void accumulate(Element* sums, int first, int rank, const OperandA& a, const OperandB& b) {
    constexpr int k_extent = OperandA::k_extent;
    constexpr int depth_a = PanelA<OperandA>::depth, depth_b = PanelB<OperandB>::depth;
    constexpr int depth = depth_a > depth_b ? depth_a : depth_b;
    // Eight values of k an iteration hide the loop; four where more passes keep accumulators. Longer straight code lets
    // ptxas raise more loads than there are registers.
    [[maybe_unused]] constexpr int unroll = (Fragment::size > size ? 4 : 8) / depth;
    const int row = a.inside(Fragment::row(rank, first)), col = b.inside(Fragment::col(rank, first));
#pragma unroll unroll
    for (int k = 0; k + depth <= k_extent; k += depth) step<depth>(sums, a, row, b, col, k);
    // The tail multiplies exactly the values of k that exist: what lies past them in a line may be NaN.
    constexpr int tail = k_extent % depth;
    if constexpr (tail > 0) step<tail>(sums, a, row, b, col, k_extent - tail);
  }
};

}  // namespace devmath
