// Which elements of a tile a thread holds in registers: the C++ form of FragmentMap in fragments.py.
//
//   Digits<d0, m0, s0, d1, m1, s1, ...>::value(x) = sum over the triples of (x / d) % m * s
//
// The numbers come from Python, so that the simulator, the lowering and these headers share one description.
#pragma once

#include "platform.cuh"

namespace devmath {

/// A digit of a number: (x / divisor) % modulus.
struct Digit { int divisor, modulus; };

template <int... kTerms>
struct Digits {
  static constexpr int count = 1, maximum = 0;
  DEVMATH_DEVICE static constexpr int value(int) { return 0; }
  DEVMATH_DEVICE static constexpr int slot(int) { return 0; }
  DEVMATH_DEVICE static constexpr int holder(int) { return 0; }
  DEVMATH_DEVICE static constexpr int inverse(int) { return 0; }
  DEVMATH_DEVICE static constexpr Digit of_stride(int) { return {1, 1}; }
  DEVMATH_DEVICE static constexpr int bits_below(int) { return 0; }
  DEVMATH_DEVICE static constexpr int count_from(int) { return 1; }
  DEVMATH_DEVICE static constexpr int slot_from(int, int) { return 0; }
};

template <int kDivisor, int kModulus, int kStride, int... kRest>
struct Digits<kDivisor, kModulus, kStride, kRest...> {
  using Rest = Digits<kRest...>;
  static constexpr int count = kModulus * Rest::count;  // different combinations of digits
  static constexpr int maximum = (kModulus - 1) * kStride + Rest::maximum;
  // Unsigned: division and remainder by powers of two are then one instruction each.
  DEVMATH_DEVICE static constexpr int digit(int x) { return (u32)x / kDivisor % kModulus; }
  DEVMATH_DEVICE static constexpr int value(int x) { return digit(x) * kStride + Rest::value(x); }
  /// Which of the combinations of digits x has, from 0 on without gaps.
  DEVMATH_DEVICE static constexpr int slot(int x) { return digit(x) + kModulus * Rest::slot(x); }
  /// The least number that has combination `slot`.
  DEVMATH_DEVICE static constexpr int holder(int slot) {
    return slot % kModulus * kDivisor + Rest::holder(slot / kModulus);
  }
  /// The least number of a value, where each stride is a multiple of all that the smaller strides reach.
  DEVMATH_DEVICE static constexpr int inverse(int value) {
    return value / kStride % kModulus * kDivisor + Rest::inverse(value);
  }
  /// The bits of numbers below `end`, a power of two, that some digit depends on. Digits below it are powers of two.
  DEVMATH_DEVICE static constexpr int bits_below(int end) {
    return (kDivisor < end ? kDivisor * kModulus - kDivisor : 0) | Rest::bits_below(end);
  }
  /// Combinations of the digits of x / start alone, and which of them x has.
  DEVMATH_DEVICE static constexpr int count_from(int start) {
    return (kDivisor >= start ? kModulus : 1) * Rest::count_from(start);
  }
  DEVMATH_DEVICE static constexpr int slot_from(int start, int x) {
    return kDivisor >= start ? digit(x) + kModulus * Rest::slot_from(start, x) : Rest::slot_from(start, x);
  }
  /// The digit that a stride belongs to; one that is always 0 where there is none.
  DEVMATH_DEVICE static constexpr Digit of_stride(int stride) {
    return stride == kStride ? Digit{kDivisor, kModulus} : Rest::of_stride(stride);
  }
};

/// Register i of thread t is element (row(t, i), col(t, i)); it belongs to the tile where in_bounds(t, i).
template <int kRows, int kCols, int kSize, typename OfThreadRow, typename OfRegisterRow, typename OfThreadCol,
          typename OfRegisterCol>
struct FragmentMap {
  using RowOfThread = OfThreadRow;
  using RowOfRegister = OfRegisterRow;
  using ColOfThread = OfThreadCol;
  using ColOfRegister = OfRegisterCol;
  using Transposed = FragmentMap<kCols, kRows, kSize, ColOfThread, ColOfRegister, RowOfThread, RowOfRegister>;
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
};

}  // namespace devmath
