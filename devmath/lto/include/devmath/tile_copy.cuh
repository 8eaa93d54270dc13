// Tiles between shared memory and arrays in global memory, whatever the array's strides.
//
// An array may be smaller than the tile, empty or larger: load_tile writes zeros to the elements that the array lacks,
// store_tile skips them. A load may also write zeros between the end of a line and the end of its last 16-byte chunk.
// The tile starts at a multiple of 16 bytes. Nothing here waits or synchronises: every load commits one group of
// copies, an empty one where all went through registers, and has landed after cp.async.wait_group and a barrier.
//
// Lines and positions are those of layout.cuh. A copy takes the first of these ways that the array allows:
//   chunks  contiguous along the lines and 16-byte aligned: 16 bytes an access
//   bytes   elements of 1 byte, contiguous across the lines and 4-byte aligned: transposed in registers
//   across  the smaller stride leads from line to line: consecutive threads take consecutive lines
//   along   all else: consecutive threads take consecutive positions of a line
#pragma once

#include "async_copy.cuh"
#include "byte_transpose.cuh"
#include "layout.cuh"
#include "strided_array.cuh"

namespace devmath {

/// Sixteen bytes, moved by one instruction.
struct alignas(16) Chunk { u64 words[2]; };

/// Every line of the tile starts at a chunk.
template <typename Layout>
constexpr bool kHasChunks = Layout::ld % Layout::chunk_length == 0;

/// One thread's cells of a grid of kLines x kLength, one a trip.
///
/// The block is a rectangle of threads that moves over the grid, as wide as the inner extent where it has the threads.
/// A thread's cell of a trip is (line, position), its first cell, plus constants: line_step(trip), position_step(trip).
/// kAcross: the inner extent is that of the lines, else that of the positions.
template <int kThreads, int kLines, int kLength, bool kAcross>
struct GridWalk {
  static constexpr int inner_extent = kAcross ? kLines : kLength, outer_extent = kAcross ? kLength : kLines;
  static constexpr int width = inner_extent < kThreads ? inner_extent : kThreads, height = kThreads / width;
  static constexpr int inner_trips = divide_up(inner_extent, width);
  static constexpr int trips = inner_trips * divide_up(outer_extent, height);
  static constexpr bool divides_grid = kLines * kLength == trips * kThreads;

  int line, position;
  bool has_place;  // false for the threads left over beyond the rectangle

  DEVMATH_DEVICE explicit GridWalk(int rank) : has_place(rank < width * height) {
    const int inner = (u32)rank % width, outer = (u32)rank / width;
    line = kAcross ? inner : outer;
    position = kAcross ? outer : inner;
  }

  DEVMATH_DEVICE static int inner_step(int trip) { return trip % inner_trips * width; }
  DEVMATH_DEVICE static int outer_step(int trip) { return trip / inner_trips * height; }
  DEVMATH_DEVICE static int line_step(int trip) { return kAcross ? inner_step(trip) : outer_step(trip); }
  DEVMATH_DEVICE static int position_step(int trip) { return kAcross ? outer_step(trip) : inner_step(trip); }

  DEVMATH_DEVICE bool has_cell(int trip) const {
    return divides_grid || (has_place && line + line_step(trip) < kLines && position + position_step(trip) < kLength);
  }
};

/// Chunks, asynchronously; the end of the array's row inside a chunk is followed by zeros.
template <typename Layout, int kThreads>
DEVMATH_DEVICE void load_chunks(int rank, typename Layout::Element* smem,
                                StridedArray<const typename Layout::Element> gmem) {
  constexpr int kLength = Layout::chunk_length, kItemBytes = sizeof(typename Layout::Element);
  using Walk = GridWalk<kThreads, Layout::lines, divide_up(Layout::line_length, kLength), false>;
  const Walk walk(rank);
  const auto mine = gmem.from(walk.line, walk.position * kLength);
#pragma unroll 8
  for (int trip = 0; trip < Walk::trips; ++trip) {
    const int line = walk.line_step(trip), position = walk.position_step(trip) * kLength;
    const int left = mine.columns - position;
    const int valid = left < 0 ? 0 : left < kLength ? left : kLength;
    if (walk.has_cell(trip)) {
      copy_async<16>(smem + Layout::line_offset(walk.line + line, walk.position * kLength + position),
                     mine.at(line, position), line < mine.rows ? valid * kItemBytes : 0);
    }
  }
}

/// Copies *gmem, or zeros where it does not exist. Complex numbers go in two parts: they may be aligned to a part only.
template <typename T>
DEVMATH_DEVICE void copy_element_async(T* smem, const T* gmem, bool exists) {
  constexpr int kParts = IsComplex<T>::value ? 2 : 1, kPartBytes = sizeof(T) / kParts;
  DEVMATH_UNROLL
  for (int part = 0; part < kParts; ++part) {
    copy_async<kPartBytes>((char*)smem + part * kPartBytes, (const char*)gmem + part * kPartBytes,
                           exists ? kPartBytes : 0);
  }
}

/// Elements of 4, 8 or 16 bytes, asynchronously.
template <typename Layout, int kThreads, bool kAcross>
DEVMATH_DEVICE void load_wide_elements(int rank, typename Layout::Element* smem,
                                       StridedArray<const typename Layout::Element> gmem) {
  using Walk = GridWalk<kThreads, Layout::lines, Layout::line_length, kAcross>;
  const Walk walk(rank);
  const auto mine = gmem.from(walk.line, walk.position);
#pragma unroll 8
  for (int trip = 0; trip < Walk::trips; ++trip) {
    const int line = walk.line_step(trip), position = walk.position_step(trip);
    if (walk.has_cell(trip)) {
      copy_element_async(smem + Layout::line_offset(walk.line + line, walk.position + position),
                         mine.at(line, position), mine.contains(line, position));
    }
  }
}

/// Elements of 1 or 2 bytes, too small for cp.async, through registers; the loads of a batch are in flight together.
template <typename Layout, int kThreads, bool kAcross>
DEVMATH_DEVICE void load_narrow_elements(int rank, typename Layout::Element* smem,
                                         StridedArray<const typename Layout::Element> gmem) {
  using Walk = GridWalk<kThreads, Layout::lines, Layout::line_length, kAcross>;
  constexpr int kBatch = Walk::trips < 8 ? Walk::trips : 8;
  const Walk walk(rank);
  const auto mine = gmem.from(walk.line, walk.position);
#pragma unroll 1
  for (int first = 0; first < Walk::trips; first += kBatch) {
    typename Layout::Element batch[kBatch];
    DEVMATH_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      const int line = walk.line_step(first + i), position = walk.position_step(first + i);
      batch[i] = mine.contains(line, position) ? *mine.at(line, position) : typename Layout::Element{};
    }
    DEVMATH_UNROLL
    for (int i = 0; i < kBatch; ++i) {
      const int line = walk.line_step(first + i), position = walk.position_step(first + i);
      if (first + i < Walk::trips && walk.has_cell(first + i)) {
        smem[Layout::line_offset(walk.line + line, walk.position + position)] = batch[i];
      }
    }
  }
}

template <typename Layout, int kThreads, bool kAcross>
DEVMATH_DEVICE void load_elements(int rank, typename Layout::Element* smem,
                                  StridedArray<const typename Layout::Element> gmem) {
  if constexpr (sizeof(typename Layout::Element) >= 4) {
    load_wide_elements<Layout, kThreads, kAcross>(rank, smem, gmem);
  } else {
    load_narrow_elements<Layout, kThreads, kAcross>(rank, smem, gmem);
  }
}

/// Whole chunks of the array's rows; the rest of each row is left to the caller.
template <typename Layout, int kThreads>
DEVMATH_DEVICE void store_chunks(int rank, const typename Layout::Element* smem,
                                 StridedArray<typename Layout::Element> gmem) {
  constexpr int kLength = Layout::chunk_length;
  using Walk = GridWalk<kThreads, Layout::lines, divide_up(Layout::line_length, kLength), false>;
  const Walk walk(rank);
  const auto mine = gmem.from(walk.line, walk.position * kLength);
#pragma unroll 8
  for (int trip = 0; trip < Walk::trips; ++trip) {
    const int line = walk.line_step(trip), position = walk.position_step(trip) * kLength;
    if (walk.has_cell(trip) && mine.contains(line, position + kLength - 1)) {
      *(Chunk*)mine.at(line, position) =
          *(const Chunk*)(smem + Layout::line_offset(walk.line + line, walk.position * kLength + position));
    }
  }
}

/// Elements of the kLength positions from `first_position` on.
template <typename Layout, int kThreads, int kLength, bool kAcross, typename ArrayElement>
DEVMATH_DEVICE void store_elements(int rank, const typename Layout::Element* smem, StridedArray<ArrayElement> gmem,
                                   int first_position = 0) {
  using Walk = GridWalk<kThreads, Layout::lines, kLength, kAcross>;
  const Walk walk(rank);
  const auto mine = gmem.from(walk.line, first_position + walk.position);
#pragma unroll 8
  for (int trip = 0; trip < Walk::trips; ++trip) {
    const int line = walk.line_step(trip), position = walk.position_step(trip);
    if (walk.has_cell(trip) && mine.contains(line, position)) {
      const auto element = smem[Layout::line_offset(walk.line + line, first_position + walk.position + position)];
      mine.store(line, position, convert<ArrayElement>(element));
    }
  }
}

/// Chunks, then the elements at the end of the rows that fill no chunk.
template <typename Layout, int kThreads>
DEVMATH_DEVICE void store_aligned_rows(int rank, const typename Layout::Element* smem,
                                       StridedArray<typename Layout::Element> gmem) {
  store_chunks<Layout, kThreads>(rank, smem, gmem);
  const int remainder = gmem.columns % Layout::chunk_length;
  if (remainder > 0) {
    store_elements<Layout, kThreads, Layout::chunk_length, false>(rank, smem, gmem, gmem.columns - remainder);
  }
}

/// Thread `rank` of kThreads fills its part of the tile. Rows of `gmem`, clipped to the tile, run along its lines.
template <typename Layout, int kThreads>
DEVMATH_DEVICE void copy_in(int rank, typename Layout::Element* smem,
                            StridedArray<const typename Layout::Element> gmem) {
  if constexpr (kHasChunks<Layout> && sizeof(typename Layout::Element) == 1) {
    if (gmem.transposed().has_aligned_rows(sizeof(u32))) {
      return load_transposed_bytes<Layout, kThreads>(rank, smem, gmem);
    }
  }
  if (kHasChunks<Layout> && gmem.has_aligned_rows(sizeof(Chunk))) {
    load_chunks<Layout, kThreads>(rank, smem, gmem.with_contiguous_rows());
  } else if (gmem.is_denser_down_columns()) {
    load_elements<Layout, kThreads, true>(rank, smem, gmem);
  } else {
    load_elements<Layout, kThreads, false>(rank, smem, gmem);
  }
}

/// Thread `rank` of kThreads writes its part of the tile. Rows of `gmem`, clipped to the tile, run along its lines.
template <typename Layout, int kThreads, typename ArrayElement>
DEVMATH_DEVICE void copy_out(int rank, const typename Layout::Element* smem, StridedArray<ArrayElement> gmem) {
  if constexpr (kHasChunks<Layout> && IsSame<ArrayElement, typename Layout::Element>::value) {
    if (gmem.has_aligned_rows(sizeof(Chunk))) {
      return store_aligned_rows<Layout, kThreads>(rank, smem, gmem.with_contiguous_rows());
    }
  }
  if (gmem.is_denser_down_columns()) {
    store_elements<Layout, kThreads, Layout::line_length, true>(rank, smem, gmem);
  } else {
    store_elements<Layout, kThreads, Layout::line_length, false>(rank, smem, gmem);
  }
}

/// The array that a wrapper's arguments describe, clipped to the tile, its rows along the lines of the tile.
template <typename Layout, typename T>
DEVMATH_DEVICE StridedArray<T> along_lines(T* base, i64 rows, i64 columns, i64 row_stride_bytes,
                                           i64 column_stride_bytes) {
  const StridedArray<T> array = clipped_array(base, rows, columns, row_stride_bytes, column_stride_bytes,
                                              Layout::rows, Layout::cols);
  return Layout::row_order ? array : array.transposed();
}

#if DEVMATH_ON_GPU
/// tile[i, j] = array[i, j], or 0 past the array's end, for every element of the tile; by the whole block.
template <typename Layout, int kThreads>
DEVMATH_DEVICE void load_tile(void* smem, const void* gmem, i64 rows, i64 columns, i64 row_stride_bytes,
                              i64 column_stride_bytes) {
  using Element = typename Layout::Element;
  copy_in<Layout, kThreads>(block_rank(), (Element*)smem, along_lines<Layout>(
      (const Element*)gmem, rows, columns, row_stride_bytes, column_stride_bytes));
  commit_copies();
}

/// array[i, j] = tile[i, j], converted, for every element that both have; by the whole block.
template <typename Layout, int kThreads, typename ArrayElement>
DEVMATH_DEVICE void store_tile(const void* smem, void* gmem, i64 rows, i64 columns, i64 row_stride_bytes,
                               i64 column_stride_bytes) {
  using Element = typename Layout::Element;
  copy_out<Layout, kThreads>(block_rank(), (const Element*)smem, along_lines<Layout>(
      (ArrayElement*)gmem, rows, columns, row_stride_bytes, column_stride_bytes));
}
#endif

}  // namespace devmath
