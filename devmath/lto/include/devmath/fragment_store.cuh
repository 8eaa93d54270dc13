// Fragments, the registers of the threads of a block, to arrays in global memory and to tiles in shared memory.
//
// Registers outside the fragment's tile, or past the end of the destination, are skipped. Every register number is a
// constant after unrolling, so that a fragment stays in registers. Digits map 0 to 0: row(thread, 0) is the thread's
// share of a row, row(0, i) the register's.
#pragma once

#include "fragment.cuh"
#include "layout.cuh"
#include "strided_array.cuh"

namespace devmath {

/// Two neighbours of a row, moved by one instruction.
template <typename T>
struct alignas(2 * sizeof(T)) Pair { T first, second; };

/// Rows of `gmem` are contiguous and consist of whole pairs.
template <typename Fragment, typename Element, typename ArrayElement>
DEVMATH_DEVICE void store_fragment_pairs(int thread, const Element* rmem, StridedArray<ArrayElement> gmem) {
  const StridedArray<ArrayElement> mine = gmem.from(Fragment::row(thread, 0), Fragment::col(thread, 0));
  DEVMATH_UNROLL
  for (int i = 0; i < Fragment::size; i += 2) {
    const int row = Fragment::row(0, i), col = Fragment::col(0, i);
    const ArrayElement first = convert<ArrayElement>(rmem[i]), second = convert<ArrayElement>(rmem[i + 1]);
    if (mine.contains(row, col)) *(Pair<ArrayElement>*)mine.at(row, col) = {first, second};
  }
}

template <typename Fragment, typename Element, typename ArrayElement>
DEVMATH_DEVICE void store_fragment_elements(int thread, const Element* rmem, StridedArray<ArrayElement> gmem) {
  const StridedArray<ArrayElement> mine = gmem.from(Fragment::row(thread, 0), Fragment::col(thread, 0));
  DEVMATH_UNROLL
  for (int i = 0; i < Fragment::size; ++i) {
    const int row = Fragment::row(0, i), col = Fragment::col(0, i);
    if (mine.contains(row, col)) mine.store(row, col, convert<ArrayElement>(rmem[i]));
  }
}

/// Thread `thread` writes its registers to `gmem`, the array clipped to the fragment's tile.
template <typename Fragment, typename Element, typename ArrayElement>
DEVMATH_DEVICE void copy_fragment(int thread, const Element* rmem, StridedArray<ArrayElement> gmem) {
  // 16 bytes are the widest access.
  if constexpr (Fragment::has_column_pairs() && sizeof(Pair<ArrayElement>) <= 16) {
    if (gmem.has_aligned_rows(sizeof(Pair<ArrayElement>)) && gmem.columns % 2 == 0) {
      return store_fragment_pairs<Fragment>(thread, rmem, gmem.with_contiguous_rows());
    }
  }
  store_fragment_elements<Fragment>(thread, rmem, gmem);
}

/// Thread `thread` writes its registers to a tile.
template <typename Fragment, typename Layout, typename Element>
DEVMATH_DEVICE void copy_fragment_to_tile(int thread, const Element* rmem, typename Layout::Element* smem) {
  DEVMATH_UNROLL
  for (int i = 0; i < Fragment::size; ++i) {
    const int row = Fragment::row(thread, i), col = Fragment::col(thread, i);
    if (Fragment::in_bounds(thread, i) && row < Layout::rows && col < Layout::cols) {
      smem[Layout::offset(row, col)] = convert<typename Layout::Element>(rmem[i]);
    }
  }
}

#if DEVMATH_ON_GPU
/// array[row, col] = register, converted, for the calling thread's registers.
template <typename Fragment, typename Element, typename ArrayElement>
DEVMATH_DEVICE void store_fragment(const void* rmem, void* gmem, i64 rows, i64 columns, i64 row_stride_bytes,
                                   i64 column_stride_bytes) {
  copy_fragment<Fragment>(block_rank(), (const Element*)rmem,
                          clipped_array((ArrayElement*)gmem, rows, columns, row_stride_bytes, column_stride_bytes,
                                        Fragment::rows, Fragment::cols));
}

/// tile[row, col] = register, converted, for the calling thread's registers.
template <typename Fragment, typename Element, typename Layout>
DEVMATH_DEVICE void store_fragment_to_tile(const void* rmem, void* smem) {
  copy_fragment_to_tile<Fragment, Layout>(block_rank(), (const Element*)rmem, (typename Layout::Element*)smem);
}
#endif

}  // namespace devmath
