// Tiles of the small products that a warp computes side by side, to and from arrays in global memory.
//
// Product p of a warp belongs to its lanes [p kThreads, (p + 1) kThreads); its tile lies p kStrideBytes after the first.
// All lanes of the warp call together, those of each product with an array and a tile of their own. Where the arrays
// follow each other in memory without a gap, as in a dense batch, consecutive lanes copy consecutive 16 bytes across
// the bounds of products. Else the lanes of each product copy its tile, as a block does in tile_copy.cuh.
#pragma once

#include "tile_copy.cuh"

namespace devmath {

template <typename TileLayout, int kThreads, int kStrideBytes>
struct WarpTiles {
  using Layout = TileLayout;
  using Element = typename Layout::Element;
  static constexpr int threads = kThreads, products = 32 / kThreads;
  static constexpr int chunks_of_line = Layout::line_length / Layout::chunk_length;
  static constexpr int chunks_of_tile = Layout::lines * chunks_of_line, chunks = products * chunks_of_tile;
  static constexpr int tile_bytes = chunks_of_tile * sizeof(Chunk);  // in global memory
  /// Tiles consist of whole chunks, of which few enough stand in the code one by one.
  static constexpr bool can_be_packed =
      kHasChunks<Layout> && Layout::line_length % Layout::chunk_length == 0 && divide_up(chunks, 32) <= 64;

  /// Bytes from the first tile of the warp to where chunk `c` of all its tiles lies, in order of global memory.
  DEVMATH_DEVICE static int chunk_bytes(int c) {
    const int product = (u32)c / chunks_of_tile, chunk = (u32)c % chunks_of_tile;
    const int line = (u32)chunk / chunks_of_line, position = (u32)chunk % chunks_of_line * Layout::chunk_length;
    return product * kStrideBytes + Layout::line_offset(line, position) * (int)sizeof(Element);
  }
  /// Address of chunk `first` + `lane`, `first` a multiple of 32: a lane's own and a constant where lines and tiles
  /// divide 32 chunks or are multiples of them.
  template <typename Byte>
  DEVMATH_DEVICE static Byte* chunk_at(Byte* smem, int first, int lane) {
    constexpr bool is_sum = divides_warp(chunks_of_tile) && divides_warp(chunks_of_line) && Layout::swizzle == 0 &&
                            Layout::line_length <= Layout::ld;
    return is_sum ? smem + chunk_bytes(lane) + chunk_bytes(first) : smem + chunk_bytes(first + lane);
  }

 private:
  DEVMATH_DEVICE static constexpr bool divides_warp(int n) { return 32 % n == 0 || n % 32 == 0; }
};

/// Lane `lane` fills its part of all tiles of a warp, asynchronously, from a dense batch.
template <typename Tiles>
DEVMATH_DEVICE void load_packed(int lane, char* smem, const char* gmem) {
  const char* const mine = gmem + lane * sizeof(Chunk);
  DEVMATH_UNROLL
  for (int first = 0; first < Tiles::chunks; first += 32) {
    if (first + 32 <= Tiles::chunks || first + lane < Tiles::chunks) {
      copy_async<16>(Tiles::chunk_at(smem, first, lane), mine + first * sizeof(Chunk), sizeof(Chunk));
    }
  }
}

/// Lane `lane` writes its part of all tiles of a warp to a dense batch.
template <typename Tiles>
DEVMATH_DEVICE void store_packed(int lane, const char* smem, char* gmem) {
  char* const mine = gmem + lane * sizeof(Chunk);
  DEVMATH_UNROLL
  for (int first = 0; first < Tiles::chunks; first += 32) {
    if (first + 32 <= Tiles::chunks || first + lane < Tiles::chunks) {
      *(Chunk*)(mine + first * sizeof(Chunk)) = *(const Chunk*)Tiles::chunk_at(smem, first, lane);
    }
  }
}

#if DEVMATH_ON_GPU
/// Where the first product's array lies, if those of all products of the warp follow it without a gap; else null.
/// Rows of `gmem`, clipped to the tile, run along its lines.
template <typename Tiles, typename T>
DEVMATH_DEVICE char* packed_batch(int rank, StridedArray<T> gmem) {
  using Layout = typename Tiles::Layout;
  const int product = (u32)rank % 32 / Tiles::threads;
  const u64 expected = (u64)gmem.base - (u64)product * Tiles::tile_bytes;
  const u64 first = __shfl_sync(0xffffffffu, expected, 0);
  const bool dense = gmem.rows == Layout::lines && gmem.columns == Layout::line_length &&
                     gmem.has_aligned_rows(sizeof(Chunk)) &&
                     (Layout::lines == 1 || gmem.row_stride_bytes == Layout::line_length * (i64)sizeof(T));
  return __all_sync(0xffffffffu, dense && expected == first) ? (char*)first : nullptr;
}

/// The first tile of the warp, of whose tiles `smem` is the calling lane's.
template <typename Tiles, int kStrideBytes>
DEVMATH_DEVICE char* first_tile(int rank, const void* smem) {
  return (char*)smem - (u32)rank % 32 / Tiles::threads * kStrideBytes;
}

/// tile[i, j] = array[i, j], or 0 past the array's end, for every element of the tile; by a whole warp.
template <typename Layout, int kThreads, int kStrideBytes>
DEVMATH_DEVICE void load_tile_by_warp(void* smem, const void* gmem, i64 rows, i64 columns, i64 row_stride_bytes,
                                      i64 column_stride_bytes) {
  using Tiles = WarpTiles<Layout, kThreads, kStrideBytes>;
  using Element = typename Layout::Element;
  const int rank = block_rank();
  const auto array = along_lines<Layout>((const Element*)gmem, rows, columns, row_stride_bytes, column_stride_bytes);
  if constexpr (Tiles::can_be_packed) {
    if (const char* const batch = packed_batch<Tiles>(rank, array)) {
      return load_packed<Tiles>((u32)rank % 32, first_tile<Tiles, kStrideBytes>(rank, smem), batch);
    }
  }
  copy_in<Layout, kThreads>((u32)rank % kThreads, (Element*)smem, array);
}

/// array[i, j] = tile[i, j], converted, for every element that both have; by a whole warp.
template <typename Layout, int kThreads, int kStrideBytes, typename ArrayElement>
DEVMATH_DEVICE void store_tile_by_warp(const void* smem, void* gmem, i64 rows, i64 columns, i64 row_stride_bytes,
                                       i64 column_stride_bytes) {
  using Tiles = WarpTiles<Layout, kThreads, kStrideBytes>;
  using Element = typename Layout::Element;
  const int rank = block_rank();
  const auto array = along_lines<Layout>((ArrayElement*)gmem, rows, columns, row_stride_bytes, column_stride_bytes);
  if constexpr (Tiles::can_be_packed && IsSame<ArrayElement, Element>::value) {
    if (char* const batch = packed_batch<Tiles>(rank, array)) {
      return store_packed<Tiles>((u32)rank % 32, first_tile<Tiles, kStrideBytes>(rank, smem), batch);
    }
  }
  copy_out<Layout, kThreads>((u32)rank % kThreads, (const Element*)smem, array);
}
#endif

}  // namespace devmath
