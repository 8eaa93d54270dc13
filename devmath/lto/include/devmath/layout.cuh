// Where element (row, col) of a shared-memory tile lies. The same formula as TileLayout.offset in layouts.py.
//
//   row order: line = row, position = col;  col order: line = col, position = row
//   offset = line * ld + position, the 16-byte chunks of a line permuted by XOR where there is a swizzle.
//   A line longer than ld is cut into panels of ld elements: panel p of a line lies p * lines_allocated lines further.
#pragma once

#include "scalar.cuh"

namespace devmath {

/// A typed tile: everything about its placement is known to the compiler.
template <typename T, int kRows, int kCols, bool kRowOrder, int kLd, int kLinesAllocated, int kSwizzle>
struct TileLayout {
  using Element = T;
  static constexpr int rows = kRows, cols = kCols, ld = kLd, swizzle = kSwizzle;
  static constexpr bool row_order = kRowOrder;
  static constexpr bool is_plain = false;
  static constexpr int lines = kRowOrder ? kRows : kCols, line_length = kRowOrder ? kCols : kRows;
  static constexpr int lines_allocated = kLinesAllocated;
  static constexpr int chunk_length = 16 / sizeof(T);  // elements of the widest shared-memory access
  static constexpr int elements_allocated = divide_up(line_length, kLd) * kLinesAllocated * kLd;

  DEVMATH_DEVICE explicit TileLayout(int) {}

  /// Elements from the base to `position` of `line`.
  DEVMATH_DEVICE static int line_offset(int line, int position) {
    if constexpr (line_length > kLd) {
      line += (u32)position / kLd * kLinesAllocated;
      position = (u32)position % kLd;
    }
    if constexpr (kSwizzle > 0) {
      // Unsigned: division and remainder by powers of two are then one instruction each.
      const u32 chunk = (u32)position / chunk_length ^ (u32)line / (8 / kSwizzle) % kSwizzle;
      position = chunk * chunk_length + (u32)position % chunk_length;
    }
    return line * kLd + position;
  }
  DEVMATH_DEVICE static int offset(int row, int col) {
    return kRowOrder ? line_offset(row, col) : line_offset(col, row);
  }
};

/// An array of the user's own: element-aligned only, the leading dimension known at run time (constant after inlining).
template <typename T, int kRows, int kCols, bool kRowOrder>
struct PlainLayout {
  using Element = T;
  static constexpr int rows = kRows, cols = kCols, swizzle = 0;
  static constexpr bool row_order = kRowOrder;
  static constexpr bool is_plain = true;
  static constexpr int lines = kRowOrder ? kRows : kCols, line_length = kRowOrder ? kCols : kRows;
  static constexpr int chunk_length = 1;
  int ld;

  DEVMATH_DEVICE explicit PlainLayout(int leading_dimension) : ld(leading_dimension) {}

  DEVMATH_DEVICE int line_offset(int line, int position) const { return line * ld + position; }
  DEVMATH_DEVICE int offset(int row, int col) const {
    return kRowOrder ? line_offset(row, col) : line_offset(col, row);
  }
};

}  // namespace devmath
