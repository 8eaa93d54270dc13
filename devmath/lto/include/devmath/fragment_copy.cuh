// Fragments, the registers of the threads of a block, to and from arrays in global memory and tiles in shared memory.
//
// Registers outside the fragment's tile, or past the end of the other side, are skipped by a store and become zero by
// a load. Every register number is a constant after unrolling, so that a fragment stays in registers.
//
// An array whose rows, or columns, are contiguous, aligned and of whole runs (fragment_runs.cuh) is accessed by runs
// of 16 bytes where the fragment has them; any other array element by element. All lanes of a warp call: they exchange
// what they hold.
#pragma once

#include "fragment_runs.cuh"
#include "lanes.cuh"
#include "layout.cuh"
#include "strided_array.cuh"
#include "vector.cuh"

namespace devmath {

/// Runs of an array that is contiguous along them.
template <typename Fragment, typename Runs, typename Element, typename ArrayElement>
DEVMATH_DEVICE void store_runs(int thread, const Element* rmem, StridedArray<ArrayElement> gmem) {
  using Piece = Vector<ArrayElement, Runs::own>;
  const int place = Runs::place(thread);
  const StridedArray<ArrayElement> mine = gmem.from(Runs::row(thread), Runs::col(thread));
  DEVMATH_UNROLL
  for (int group = 0; group < Runs::groups; ++group) {
    Words<Piece> pieces[Runs::lanes];
    DEVMATH_UNROLL
    for (int p = 0; p < Runs::lanes; ++p) {
      Piece piece = {};
      if (Runs::exists(group, p)) {
        DEVMATH_UNROLL
        for (int q = 0; q < Runs::own; ++q) {
          piece.values[q] = convert<ArrayElement>(rmem[Runs::register_of(group, p) + q * Runs::register_distance]);
        }
      }
      pieces[p] = Words<Piece>(piece);
    }
    transpose_lanes<Runs::lanes, Runs::lane_distance>(pieces, place);
    const int first = Runs::register_of(group, 0), row = Fragment::row(0, first), col = Fragment::col(0, first);
    if (Runs::exists(group, place) && mine.contains(row, col)) {
      Vector<Piece, Runs::lanes> run;
      DEVMATH_UNROLL
      for (int p = 0; p < Runs::lanes; ++p) run.values[p] = pieces[p].value();
      *(Vector<Piece, Runs::lanes>*)mine.at(row, col) = run;
    }
  }
}

template <typename Fragment, typename Runs, typename Element, typename ArrayElement>
DEVMATH_DEVICE void load_runs(int thread, Element* rmem, StridedArray<const ArrayElement> gmem) {
  using Piece = Vector<ArrayElement, Runs::own>;
  const int place = Runs::place(thread);
  const StridedArray<const ArrayElement> mine = gmem.from(Runs::row(thread), Runs::col(thread));
  DEVMATH_UNROLL
  for (int group = 0; group < Runs::groups; ++group) {
    const int first = Runs::register_of(group, 0), row = Fragment::row(0, first), col = Fragment::col(0, first);
    Vector<Piece, Runs::lanes> run = {};
    if (Runs::exists(group, place) && mine.contains(row, col)) {
      run = *(const Vector<Piece, Runs::lanes>*)mine.at(row, col);
    }
    Words<Piece> pieces[Runs::lanes];
    DEVMATH_UNROLL
    for (int p = 0; p < Runs::lanes; ++p) pieces[p] = Words<Piece>(run.values[p]);
    transpose_lanes<Runs::lanes, Runs::lane_distance>(pieces, place);
    DEVMATH_UNROLL
    for (int p = 0; p < Runs::lanes; ++p) {
      if (!Runs::exists(group, p)) continue;
      const Piece piece = pieces[p].value();
      DEVMATH_UNROLL
      for (int q = 0; q < Runs::own; ++q) {
        rmem[Runs::register_of(group, p) + q * Runs::register_distance] = convert<Element>(piece.values[q]);
      }
    }
  }
}

template <typename Fragment, typename Element, typename ArrayElement>
DEVMATH_DEVICE void store_elements_of(int thread, const Element* rmem, StridedArray<ArrayElement> gmem) {
  const StridedArray<ArrayElement> mine = gmem.from(Fragment::row(thread, 0), Fragment::col(thread, 0));
  DEVMATH_UNROLL
  for (int i = 0; i < Fragment::size; ++i) {
    const int row = Fragment::row(0, i), col = Fragment::col(0, i);
    if (mine.contains(row, col)) mine.store(row, col, convert<ArrayElement>(rmem[i]));
  }
}

template <typename Fragment, typename Element, typename ArrayElement>
DEVMATH_DEVICE void load_elements_of(int thread, Element* rmem, StridedArray<const ArrayElement> gmem) {
  const StridedArray<const ArrayElement> mine = gmem.from(Fragment::row(thread, 0), Fragment::col(thread, 0));
  DEVMATH_UNROLL
  for (int i = 0; i < Fragment::size; ++i) {
    const int row = Fragment::row(0, i), col = Fragment::col(0, i);
    rmem[i] = convert<Element>(mine.contains(row, col) ? mine.load(row, col) : ArrayElement{});
  }
}

/// The runs of a fragment that 16 bytes of an array hold.
template <typename Fragment, typename ArrayElement>
using ArrayRuns = Runs<Fragment, 16 / sizeof(ArrayElement), true>;

/// Whether `gmem` can be accessed by runs along its rows; the same in all lanes of a warp, which exchange pieces then.
template <typename Fragment, typename T>
DEVMATH_DEVICE bool has_runs(StridedArray<T> gmem) {
  constexpr int length = ArrayRuns<Fragment, T>::length;
  // A complex number by itself is worth it: elements move in two parts.
  if constexpr (length == 1 && !IsComplex<T>::value) return false;
  return all_lanes(gmem.has_aligned_rows(length * sizeof(T)) && gmem.columns % length == 0);
}

/// Thread `thread` writes its registers to `gmem`, the array clipped to the fragment's tile.
template <typename Fragment, typename Element, typename ArrayElement>
DEVMATH_DEVICE void copy_fragment(int thread, const Element* rmem, StridedArray<ArrayElement> gmem) {
  using Columns = typename Fragment::Transposed;
  if (has_runs<Fragment>(gmem)) {
    store_runs<Fragment, ArrayRuns<Fragment, ArrayElement>>(thread, rmem, gmem.with_contiguous_rows());
  } else if (has_runs<Columns>(gmem.transposed())) {
    store_runs<Columns, ArrayRuns<Columns, ArrayElement>>(thread, rmem, gmem.transposed().with_contiguous_rows());
  } else {
    store_elements_of<Fragment>(thread, rmem, gmem);
  }
}

/// Thread `thread` fills its registers from `gmem`, the array clipped to the fragment's tile.
template <typename Fragment, typename Element, typename ArrayElement>
DEVMATH_DEVICE void fill_fragment(int thread, Element* rmem, StridedArray<const ArrayElement> gmem) {
  using Columns = typename Fragment::Transposed;
  if (has_runs<Fragment>(gmem)) {
    load_runs<Fragment, ArrayRuns<Fragment, ArrayElement>>(thread, rmem, gmem.with_contiguous_rows());
  } else if (has_runs<Columns>(gmem.transposed())) {
    load_runs<Columns, ArrayRuns<Columns, ArrayElement>>(thread, rmem, gmem.transposed().with_contiguous_rows());
  } else {
    load_elements_of<Fragment>(thread, rmem, gmem);
  }
}

/// A fragment, or its transpose, so that its rows run along the lines of a tile.
template <typename Fragment, bool kRowOrder>
struct AlongLines { using Type = Fragment; };
template <typename Fragment>
struct AlongLines<Fragment, false> { using Type = typename Fragment::Transposed; };

/// Registers and tile: the pieces that lie along the lines of the tile and inside its 16-byte chunks.
template <typename FragmentOfTile, typename Layout>
struct TilePieces {
  static constexpr int shared_rows = FragmentOfTile::rows < Layout::rows ? FragmentOfTile::rows : Layout::rows;
  static constexpr int shared_cols = FragmentOfTile::cols < Layout::cols ? FragmentOfTile::cols : Layout::cols;

  using Fragment = typename AlongLines<FragmentOfTile, Layout::row_order>::Type;
  static constexpr int lines = Layout::row_order ? shared_rows : shared_cols;
  static constexpr int line_length = Layout::row_order ? shared_cols : shared_rows;
  // A piece must neither cross the end of a line nor lie across chunks.
  static constexpr int longest = power_of_two_in(line_length, power_of_two_in(Layout::ld, Layout::chunk_length));
  using Shares = Runs<Fragment, longest, false>;
  using Piece = Vector<typename Layout::Element, Shares::own>;

  /// Calls visit(first register, place in the tile or null) for every piece of a thread.
  template <typename Element, typename Visit>
  DEVMATH_DEVICE static void for_each(int thread, Element* smem, Visit visit) {
    DEVMATH_UNROLL
    for (int piece = 0; piece < Shares::pieces; ++piece) {
      const int first = Shares::register_of(piece, 0);
      const int line = Fragment::row(thread, first), position = Fragment::col(thread, first);
      visit(first, line < lines && position < line_length ? smem + Layout::line_offset(line, position) : nullptr);
    }
  }
};

/// Thread `thread` writes its registers to a tile.
template <typename Fragment, typename Layout, typename Element>
DEVMATH_DEVICE void copy_fragment_to_tile(int thread, const Element* rmem, typename Layout::Element* smem) {
  using Pieces = TilePieces<Fragment, Layout>;
  using Piece = typename Pieces::Piece;
  Pieces::for_each(thread, smem, [&](int first, typename Layout::Element* at) {
    if (!at) return;
    Piece piece;
    DEVMATH_UNROLL
    for (int q = 0; q < Pieces::Shares::own; ++q) {
      piece.values[q] = convert<typename Layout::Element>(rmem[first + q * Pieces::Shares::register_distance]);
    }
    *(Piece*)at = piece;
  });
}

/// Thread `thread` fills its registers from a tile.
template <typename Fragment, typename Layout, typename Element>
DEVMATH_DEVICE void fill_fragment_from_tile(int thread, Element* rmem, const typename Layout::Element* smem) {
  using Pieces = TilePieces<Fragment, Layout>;
  using Piece = typename Pieces::Piece;
  Pieces::for_each(thread, smem, [&](int first, const typename Layout::Element* at) {
    Piece piece = {};
    if (at) piece = *(const Piece*)at;
    DEVMATH_UNROLL
    for (int q = 0; q < Pieces::Shares::own; ++q) {
      rmem[first + q * Pieces::Shares::register_distance] = convert<Element>(piece.values[q]);
    }
  });
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

/// register = array[row, col], converted, or 0 past the array's end, for the calling thread's registers.
template <typename Fragment, typename Element, typename ArrayElement>
DEVMATH_DEVICE void load_fragment(void* rmem, const void* gmem, i64 rows, i64 columns, i64 row_stride_bytes,
                                  i64 column_stride_bytes) {
  fill_fragment<Fragment, Element, ArrayElement>(
      block_rank(), (Element*)rmem, clipped_array((const ArrayElement*)gmem, rows, columns, row_stride_bytes,
                                                  column_stride_bytes, Fragment::rows, Fragment::cols));
}

/// tile[row, col] = register, converted, for the calling thread's registers.
template <typename Fragment, typename Element, typename Layout>
DEVMATH_DEVICE void store_fragment_to_tile(const void* rmem, void* smem) {
  copy_fragment_to_tile<Fragment, Layout>(block_rank(), (const Element*)rmem, (typename Layout::Element*)smem);
}

/// register = tile[row, col], converted, for the calling thread's registers.
template <typename Fragment, typename Element, typename Layout>
DEVMATH_DEVICE void load_fragment_from_tile(void* rmem, const void* smem) {
  fill_fragment_from_tile<Fragment, Layout>(block_rank(), (Element*)rmem, (const typename Layout::Element*)smem);
}
#endif

}  // namespace devmath
