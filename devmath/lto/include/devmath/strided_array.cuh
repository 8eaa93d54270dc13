// A two-dimensional array in global memory as NumPy describes one: a base, extents, and strides in bytes of any sign.
//
//   element (row, column) lies at base + row * row_stride_bytes + column * column_stride_bytes
//
// Elements are aligned as in NumPy: to their size, complex ones to that of their real part.
#pragma once

#include "scalar.cuh"

namespace devmath {

/// T is const where the array is only read. The extents are those that clipped_array() left, so int holds them.
template <typename T>
struct StridedArray {
  T* base;
  int rows, columns;
  i64 row_stride_bytes, column_stride_bytes;

  DEVMATH_DEVICE T* at(int row, int column) const {
    return (T*)((char*)base + offset_bytes(row, column));
  }
  // Complex numbers go in two parts: they may be aligned to a part only.
  DEVMATH_DEVICE void store(int row, int column, T x) const {
    if constexpr (IsComplex<T>::value) {
      using Real = decltype(x.re);
      Real* const parts = (Real*)at(row, column);
      parts[0] = x.re;
      parts[1] = x.im;
    } else {
      *at(row, column) = x;
    }
  }
  DEVMATH_DEVICE T load(int row, int column) const {
    if constexpr (IsComplex<T>::value) {
      using Real = decltype(T{}.re);
      const Real* const parts = (const Real*)at(row, column);
      return T{parts[0], parts[1]};
    } else {
      return *at(row, column);
    }
  }
  DEVMATH_DEVICE bool contains(int row, int column) const { return row < rows && column < columns; }

  /// The part from (row, column) on; an extent is negative where that lies past the end.
  DEVMATH_DEVICE StridedArray from(int row, int column) const {
    T* const first = (T*)((char*)base + opaque(offset_bytes(row, column)));
    return {first, rows - row, columns - column, row_stride_bytes, column_stride_bytes};
  }
  DEVMATH_DEVICE StridedArray transposed() const {
    return {base, columns, rows, column_stride_bytes, row_stride_bytes};
  }
  /// Rows are contiguous, and each begins at a multiple of `alignment_bytes`.
  DEVMATH_DEVICE bool has_aligned_rows(int alignment_bytes) const {
    return column_stride_bytes == sizeof(T) && ((u64)base | (u64)row_stride_bytes) % alignment_bytes == 0;
  }
  /// The same array where has_aligned_rows(), its column stride known to the compiler.
  DEVMATH_DEVICE StridedArray with_contiguous_rows() const {
    return {base, rows, columns, row_stride_bytes, sizeof(T)};
  }
  /// The smaller stride leads from row to row.
  DEVMATH_DEVICE bool is_denser_down_columns() const {
    return magnitude(row_stride_bytes) < magnitude(column_stride_bytes);
  }

 private:
  DEVMATH_DEVICE i64 offset_bytes(int row, int column) const {
    return row * row_stride_bytes + column * column_stride_bytes;
  }
  DEVMATH_DEVICE static i64 magnitude(i64 x) { return x < 0 ? -x : x; }

  /// Hides how x came about. Else the compiler factors r * stride + i * stride into (r + i) * stride: for constants i
  /// a 64-bit product an element in place of an addition. Hiding the pointer itself would lose its address space.
  DEVMATH_DEVICE static i64 opaque(i64 x) {
#if DEVMATH_ON_GPU
    asm("" : "+l"(x));
#endif
    return x;
  }
};

/// The first `max_rows` rows and `max_columns` columns of an array of any extents.
template <typename T>
DEVMATH_DEVICE StridedArray<T> clipped_array(T* base, i64 rows, i64 columns, i64 row_stride_bytes,
                                             i64 column_stride_bytes, int max_rows, int max_columns) {
  return {base, (int)(rows < max_rows ? rows : max_rows), (int)(columns < max_columns ? columns : max_columns),
          row_stride_bytes, column_stride_bytes};
}

}  // namespace devmath
