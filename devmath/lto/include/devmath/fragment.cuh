// Which elements of a tile a thread holds in registers: the C++ form of FragmentMap in fragments.py.
//
//   Digits<d0, m0, s0, d1, m1, s1, ...>::value(x) = sum over the triples of (x / d) % m * s
//
// The numbers come from Python, so that the simulator, the lowering and these headers share one description.
#pragma once

#include "platform.cuh"

namespace devmath {

template <int... kTerms>
struct Digits {
  static constexpr bool is_even = true;
  DEVMATH_DEVICE static constexpr int value(int) { return 0; }
};

template <int kDivisor, int kModulus, int kStride, int... kRest>
struct Digits<kDivisor, kModulus, kStride, kRest...> {
  static constexpr bool is_even = kStride % 2 == 0 && Digits<kRest...>::is_even;  // so is every value
  DEVMATH_DEVICE static constexpr int value(int x) {
    // Unsigned: division and remainder by powers of two are then one instruction each.
    return (int)((u32)x / kDivisor % kModulus) * kStride + Digits<kRest...>::value(x);
  }
};

/// Register i of thread t is element (row(t, i), col(t, i)); it belongs to the tile where in_bounds(t, i).
template <int kRows, int kCols, int kSize, typename RowOfThread, typename RowOfRegister, typename ColOfThread,
          typename ColOfRegister>
struct FragmentMap {
  static constexpr int rows = kRows, cols = kCols, size = kSize;
  DEVMATH_DEVICE static constexpr int row(int thread, int i) {
    return RowOfThread::value(thread) + RowOfRegister::value(i);
  }
  DEVMATH_DEVICE static constexpr int col(int thread, int i) {
    return ColOfThread::value(thread) + ColOfRegister::value(i);
  }
  DEVMATH_DEVICE static constexpr bool in_bounds(int thread, int i) {
    return row(thread, i) < kRows && col(thread, i) < kCols;
  }
  /// Registers 2j and 2j + 1 of every thread are neighbours of a row, the first one in an even column.
  DEVMATH_DEVICE static constexpr bool has_column_pairs() {
    bool paired = kSize % 2 == 0 && ColOfThread::is_even;
    for (int i = 0; i + 1 < kSize; i += 2) {
      paired = paired && row(0, i + 1) == row(0, i) && col(0, i) % 2 == 0 && col(0, i + 1) == col(0, i) + 1;
    }
    return paired;
  }
};

}  // namespace devmath
