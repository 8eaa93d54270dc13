// The two forms of a block GEMM, whatever the instructions that multiply.
//
//   tile form      C = alpha A B + beta C     all in shared memory; beta == 0 never reads C
//   register form  acc += A B                 acc: this thread's elements of C, as a FragmentMap says
//
// Every thread of the block calls; the caller syncs before (A, B, C visible) and after, whatever a variant does inside.
//
// A variant supplies a Block, which multiplies in passes over parts of C:
//   Fragment                  FragmentMap of all passes; registers [first, first + size) belong to one pass
//   size                      accumulators of a thread in one pass
//   col_run, row_run          accumulators that are neighbours along a row, or along a column, of C
//   row_stride                registers from one accumulator to its neighbour along a column
//   accumulate(acc, first, rank, a, b)      acc[0..size) += its part of A B
// Digits are additive over passes: element (first + i) is at row(rank, first) + row(0, i), and so for columns.
#pragma once

#include "../fragment.cuh"
#include "operand.cuh"

namespace devmath {

template <typename Real>
DEVMATH_DEVICE bool is_zero(Real x) { return x == Real(0); }
template <typename Real>
DEVMATH_DEVICE bool is_zero(Complex<Real> x) { return x.re == Real(0) && x.im == Real(0); }
DEVMATH_DEVICE bool is_zero(Half x) { return is_zero(widen(x)); }

/// What sums of type T are scaled in.
template <typename T> struct Scaled { using Type = T; };
template <> struct Scaled<Half> { using Type = float; };

/// Integers wrap around.
DEVMATH_DEVICE int product(int a, int b) { return (int)((u32)a * (u32)b); }
template <typename T>
DEVMATH_DEVICE T product(T a, T b) { return a * b; }

/// The C tile and what to do with a sum: C = alpha * sum + beta * C, rounded once.
template <typename Layout, typename Accumulator>
struct Epilog {
  using Element = typename Layout::Element;
  Accumulator alpha, beta;
  Element* smem_c;
  Layout layout;

  template <bool kReadsC>
  DEVMATH_DEVICE Element combine(Accumulator sum, Element c) const {
    using Wide = typename Scaled<Accumulator>::Type;
    const Wide scaled = product(convert<Wide>(alpha), convert<Wide>(sum));
    if constexpr (kReadsC) {
      return convert<Element>(fused_multiply_add(convert<Wide>(beta), convert<Wide>(c), scaled));
    } else {
      return convert<Element>(scaled);
    }
  }

  /// kRun neighbours along a line of C, the first at (row, col); sums[q * kStride] belongs to neighbour q.
  template <bool kReadsC, int kRun, int kStride>
  DEVMATH_DEVICE void write_run(const Accumulator* sums, int row, int col) const {
    if (row >= Layout::rows || col >= Layout::cols) return;
    if constexpr (Layout::line_length % kRun == 0) {
      auto* destination = (Vector<Element, kRun>*)(smem_c + layout.offset(row, col));
      Vector<Element, kRun> run;
      if constexpr (kReadsC) run = *destination;
      DEVMATH_UNROLL
      for (int q = 0; q < kRun; ++q) run.values[q] = combine<kReadsC>(sums[q * kStride], run.values[q]);
      *destination = run;
    } else {
      DEVMATH_UNROLL
      for (int q = 0; q < kRun; ++q) {
        const int run_row = Layout::row_order ? row : row + q, run_col = Layout::row_order ? col + q : col;
        if (run_row >= Layout::rows || run_col >= Layout::cols) break;
        Element& c = smem_c[layout.offset(run_row, run_col)];
        c = combine<kReadsC>(sums[q * kStride], kReadsC ? c : Element());
      }
    }
  }

  /// The accumulators of one pass.
  template <typename Block, bool kReadsC>
  DEVMATH_DEVICE void write_pass(const Accumulator* sums, int first, int rank) const {
    using Fragment = typename Block::Fragment;
    // A plain array promises the alignment of an element only.
    constexpr int run = Layout::is_plain ? 1 : Layout::row_order ? Block::col_run : Block::row_run;
    constexpr int stride = Layout::row_order ? 1 : Block::row_stride;
    const int row = Fragment::row(rank, first), col = Fragment::col(rank, first);
    DEVMATH_UNROLL
    for (int i = 0; i < Block::size; ++i) {
      if (i / stride % run == 0) {
        write_run<kReadsC, run, stride>(sums + i, row + Fragment::row(0, i), col + Fragment::col(0, i));
      }
    }
  }
};

/// C = alpha A B + beta C. Holds the accumulators of one pass at a time.
template <typename Block, typename A, typename B, typename C, typename Accumulator>
DEVMATH_DEVICE void tile_form(OperandA<A> a, OperandB<B> b, Epilog<C, Accumulator> epilog) {
  const int rank = block_rank();
#pragma unroll 1
  for (int first = 0; first < Block::Fragment::size; first += Block::size) {
    Accumulator sums[Block::size] = {};
    Block::accumulate(sums, first, rank, a, b);
    if (is_zero(epilog.beta)) {
      epilog.template write_pass<Block, false>(sums, first, rank);
    } else {
      epilog.template write_pass<Block, true>(sums, first, rank);
    }
  }
}

/// Halves go in pairs, so that a pair stays in one register.
template <int kSize, typename Accumulator>
DEVMATH_DEVICE void copy_sums(Accumulator* to, const Accumulator* from) {
  if constexpr (sizeof(Accumulator) == 2) {
    DEVMATH_UNROLL
    for (int i = 0; i < kSize; i += 2) copy_bytes<2 * sizeof(Accumulator)>(to + i, from + i);
  } else {
    DEVMATH_UNROLL
    for (int i = 0; i < kSize; ++i) to[i] = from[i];
  }
}

/// acc += A B, A in a tile or in registers. Every index into acc is a constant once unrolled, so that it stays in
/// registers.
template <typename Block, typename Accumulator, typename A, typename B>
DEVMATH_DEVICE void register_form(A a, OperandB<B> b, Accumulator* rmem_acc) {
  const int rank = block_rank();
  DEVMATH_UNROLL
  for (int first = 0; first < Block::Fragment::size; first += Block::size) {
    Accumulator sums[Block::size];
    copy_sums<Block::size>(sums, rmem_acc + first);
    Block::accumulate(sums, first, rank, a, b);
    copy_sums<Block::size>(rmem_acc + first, sums);
  }
}

}  // namespace devmath
