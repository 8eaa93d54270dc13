// The copies of tile_copy.cuh and fragment_copy.cuh on a CPU: the threads of a block run one after another, or as
// fibers where they exchange what they hold.
#pragma once

#include "block_fibers.hpp"
#include "devmath/fragment_copy.cuh"
#include "devmath/tile_copy.cuh"

namespace devmath {

template <typename Layout, int kThreads>
void load_by_block(void* tile, const void* array, i64 rows, i64 columns, i64 row_stride_bytes,
                   i64 column_stride_bytes) {
  using Element = typename Layout::Element;
  const auto gmem =
      along_lines<Layout>((const Element*)array, rows, columns, row_stride_bytes, column_stride_bytes);
  for (int rank = 0; rank < kThreads; ++rank) copy_in<Layout, kThreads>(rank, (Element*)tile, gmem);
}

template <typename Layout, int kThreads, typename ArrayElement>
void store_by_block(const void* tile, void* array, i64 rows, i64 columns, i64 row_stride_bytes,
                    i64 column_stride_bytes) {
  const auto gmem = along_lines<Layout>((ArrayElement*)array, rows, columns, row_stride_bytes, column_stride_bytes);
  for (int rank = 0; rank < kThreads; ++rank) {
    copy_out<Layout, kThreads>(rank, (const typename Layout::Element*)tile, gmem);
  }
}

/// Thread t holds the Fragment::size elements from fragments[t * Fragment::size] on.
template <typename Fragment, int kThreads, typename Element, typename ArrayElement>
void store_fragment_by_block(const void* fragments, void* array, i64 rows, i64 columns, i64 row_stride_bytes,
                             i64 column_stride_bytes) {
  const auto gmem = clipped_array((ArrayElement*)array, rows, columns, row_stride_bytes, column_stride_bytes,
                                  Fragment::rows, Fragment::cols);
  for_each_thread<kThreads>([&](int thread) {
    copy_fragment<Fragment>(thread, (const Element*)fragments + thread * Fragment::size, gmem);
  });
}

template <typename Fragment, int kThreads, typename Element, typename ArrayElement>
void load_fragment_by_block(void* fragments, const void* array, i64 rows, i64 columns, i64 row_stride_bytes,
                            i64 column_stride_bytes) {
  const auto gmem = clipped_array((const ArrayElement*)array, rows, columns, row_stride_bytes, column_stride_bytes,
                                  Fragment::rows, Fragment::cols);
  for_each_thread<kThreads>([&](int thread) {
    fill_fragment<Fragment, Element, ArrayElement>(thread, (Element*)fragments + thread * Fragment::size, gmem);
  });
}

template <typename Fragment, int kThreads, typename Element, typename Layout>
void store_fragment_to_tile_by_block(const void* fragments, void* tile) {
  for (int thread = 0; thread < kThreads; ++thread) {
    copy_fragment_to_tile<Fragment, Layout>(thread, (const Element*)fragments + thread * Fragment::size,
                                            (typename Layout::Element*)tile);
  }
}

template <typename Fragment, int kThreads, typename Element, typename Layout>
void load_fragment_from_tile_by_block(void* fragments, const void* tile) {
  for (int thread = 0; thread < kThreads; ++thread) {
    fill_fragment_from_tile<Fragment, Layout>(thread, (Element*)fragments + thread * Fragment::size,
                                              (const typename Layout::Element*)tile);
  }
}

/// Adds 1 to counts[line * kLength + position] where a thread of the block has that cell.
template <int kThreads, int kLines, int kLength, bool kAcross>
void count_cells(int* counts) {
  using Walk = GridWalk<kThreads, kLines, kLength, kAcross>;
  for (int rank = 0; rank < kThreads; ++rank) {
    const Walk walk(rank);
    for (int trip = 0; trip < Walk::trips; ++trip) {
      if (!walk.has_cell(trip)) continue;
      ++counts[(walk.line + Walk::line_step(trip)) * kLength + walk.position + Walk::position_step(trip)];
    }
  }
}

/// offsets[row * cols + col] = offset of element (row, col)
template <typename Layout>
void write_offsets(int ld, int* offsets) {
  [[maybe_unused]] const Layout layout(ld);
  for (int row = 0; row < Layout::rows; ++row) {
    for (int col = 0; col < Layout::cols; ++col) offsets[row * Layout::cols + col] = layout.offset(row, col);
  }
}

/// Row, column and in_bounds of register i of thread t, from cells[3 * (t * Fragment::size + i)] on.
template <typename Fragment>
void write_cells(int threads, int* cells) {
  for (int thread = 0; thread < threads; ++thread) {
    for (int i = 0; i < Fragment::size; ++i, cells += 3) {
      cells[0] = Fragment::row(thread, i);
      cells[1] = Fragment::col(thread, i);
      cells[2] = Fragment::in_bounds(thread, i);
    }
  }
}

/// Elements of a run that one thread holds, and lanes that share it.
template <typename Fragment, typename ArrayElement>
void write_runs(int* runs) {
  runs[0] = ArrayRuns<Fragment, ArrayElement>::own;
  runs[1] = ArrayRuns<Fragment, ArrayElement>::lanes;
}

template <typename To, typename From>
void convert_all(const void* from, void* to, i64 size) {
  for (i64 i = 0; i < size; ++i) ((To*)to)[i] = convert<To>(((const From*)from)[i]);
}

}  // namespace devmath
