// Tiles of the small products that a warp computes side by side, to and from arrays in global memory.
//
// Product p of a warp belongs to its lanes [p kThreads, (p + 1) kThreads); its tile lies p kStrideBytes after the
// first. All lanes of the warp call together, those of each product with an array and a tile of their own. Where the
// arrays follow each other in memory without a gap, as in a dense batch, consecutive lanes copy consecutive elements,
// 16 bytes of them where lines consist of so many, across the bounds of products. Else the lanes of each product copy
// its tile, as a block does in tile_copy.cuh.
#pragma once

#include "tile_copy.cuh"

namespace devmath {

template <typename TileLayout, int kThreads, int kStrideBytes>
struct WarpTiles {
  using Layout = TileLayout;
  using Element = typename Layout::Element;
  static constexpr int threads = kThreads, products = 32 / kThreads, stride_bytes = kStrideBytes;

  /// What a lane copies at once: a chunk, or an element.
  static constexpr int unit_length =
      kHasChunks<Layout> && Layout::line_length % Layout::chunk_length == 0 ? Layout::chunk_length : 1;
  static constexpr int unit_bytes = unit_length * sizeof(Element);
  static constexpr int units_of_line = Layout::line_length / unit_length;
  static constexpr int units_of_tile = Layout::lines * units_of_line, units = products * units_of_tile;

  /// cp.async moves 4 bytes or more; the lanes of a lone product already copy consecutive elements of its lines.
  static constexpr bool can_be_packed = products > 1 && unit_bytes >= 4 && divide_up(units, 32) <= 64;

  /// Address of unit `first` + `lane` of all tiles, in order of global memory; `first` is a multiple of 32. It is the
  /// lane's own and a constant where lines and tiles divide 32 units or are multiples of them.
  template <typename Byte>
  DEVMATH_DEVICE static Byte* at(Byte* smem, int first, int lane) {
    constexpr bool is_sum = divides_warp(units_of_tile) && divides_warp(units_of_line);
    return is_sum ? smem + offset_bytes(lane) + offset_bytes(first) : smem + offset_bytes(first + lane);
  }
  DEVMATH_DEVICE static bool exists(int first, int lane) { return first + 32 <= units || first + lane < units; }

 private:
  DEVMATH_DEVICE static constexpr bool divides_warp(int n) { return 32 % n == 0 || n % 32 == 0; }
  DEVMATH_DEVICE static int offset_bytes(int unit) {
    const int product = (u32)unit / units_of_tile, in_tile = (u32)unit % units_of_tile;
    const int line = (u32)in_tile / units_of_line, position = (u32)in_tile % units_of_line * unit_length;
    return product * kStrideBytes + Layout::line_offset(line, position) * (int)sizeof(Element);
  }
};

/// Lane `lane` fills its part of all tiles of a warp, asynchronously, from a dense batch.
template <typename Tiles>
DEVMATH_DEVICE void load_packed(int lane, char* smem, const char* gmem) {
  const char* const mine = gmem + lane * Tiles::unit_bytes;
  DEVMATH_UNROLL
  for (int first = 0; first < Tiles::units; first += 32) {
    if (Tiles::exists(first, lane)) {
      copy_async<Tiles::unit_bytes>(Tiles::at(smem, first, lane), mine + first * Tiles::unit_bytes, Tiles::unit_bytes);
    }
  }
}

/// Lane `lane` writes its part of all tiles of a warp to a dense batch.
template <typename Tiles>
DEVMATH_DEVICE void store_packed(int lane, const char* smem, char* gmem) {
  struct alignas(Tiles::unit_bytes) Unit { typename Tiles::Element elements[Tiles::unit_length]; };
  char* const mine = gmem + lane * Tiles::unit_bytes;
  DEVMATH_UNROLL
  for (int first = 0; first < Tiles::units; first += 32) {
    if (Tiles::exists(first, lane)) {
      *(Unit*)(mine + first * Tiles::unit_bytes) = *(const Unit*)Tiles::at(smem, first, lane);
    }
  }
}

#if DEVMATH_ON_GPU
/// Where the first product's array lies, if those of all products of the warp follow it without a gap; else null.
/// Rows of `gmem`, clipped to the tile, run along its lines.
template <typename Tiles, typename T>
DEVMATH_DEVICE char* packed_batch(int rank, StridedArray<T> gmem) {
  using Layout = typename Tiles::Layout;
  constexpr int kTileBytes = Tiles::units_of_tile * Tiles::unit_bytes;
  const u64 expected = (u64)gmem.base - (u64)((u32)rank % 32 / Tiles::threads) * kTileBytes;
  const u64 first = __shfl_sync(0xffffffffu, expected, 0);
  const bool dense = gmem.rows == Layout::lines && gmem.columns == Layout::line_length &&
                     (gmem.rows == 1 || gmem.row_stride_bytes == Layout::line_length * (i64)sizeof(T)) &&
                     (gmem.columns == 1 || gmem.column_stride_bytes == sizeof(T)) && first % Tiles::unit_bytes == 0;
  return __all_sync(0xffffffffu, dense && expected == first) ? (char*)first : nullptr;
}

/// The first tile of the warp, of whose tiles `smem` is the calling lane's.
template <typename Tiles>
DEVMATH_DEVICE char* first_tile(int rank, const void* smem) {
  return (char*)smem - (u32)rank % 32 / Tiles::threads * Tiles::stride_bytes;
}

/// Fills the tiles of a warp if their arrays are packed.
template <typename Tiles, typename T>
DEVMATH_DEVICE bool load_if_packed(int rank, void* smem, StridedArray<T> gmem) {
  if constexpr (Tiles::can_be_packed) {
    if (const char* const batch = packed_batch<Tiles>(rank, gmem)) {
      load_packed<Tiles>((u32)rank % 32, first_tile<Tiles>(rank, smem), batch);
      return true;
    }
  }
  return false;
}

/// Writes the tiles of a warp if their arrays are packed, and of the tile's element type.
template <typename Tiles, typename T>
DEVMATH_DEVICE bool store_if_packed(int rank, const void* smem, StridedArray<T> gmem) {
  if constexpr (Tiles::can_be_packed && IsSame<T, typename Tiles::Element>::value) {
    if (char* const batch = packed_batch<Tiles>(rank, gmem)) {
      store_packed<Tiles>((u32)rank % 32, first_tile<Tiles>(rank, smem), batch);
      return true;
    }
  }
  return false;
}

/// tile[i, j] = array[i, j], or 0 past the array's end, for every element of the tile; by a whole warp.
template <typename Layout, int kThreads, int kStrideBytes>
DEVMATH_DEVICE void load_tile_by_warp(void* smem, const void* gmem, i64 rows, i64 columns, i64 row_stride_bytes,
                                      i64 column_stride_bytes) {
  using Element = typename Layout::Element;
  const int rank = block_rank();
  const auto array = along_lines<Layout>((const Element*)gmem, rows, columns, row_stride_bytes, column_stride_bytes);
  if (!load_if_packed<WarpTiles<Layout, kThreads, kStrideBytes>>(rank, smem, array)) {
    copy_in<Layout, kThreads>((u32)rank % kThreads, (Element*)smem, array);
  }
  commit_copies();
}

/// array[i, j] = tile[i, j], converted, for every element that both have; by a whole warp.
template <typename Layout, int kThreads, int kStrideBytes, typename ArrayElement>
DEVMATH_DEVICE void store_tile_by_warp(const void* smem, void* gmem, i64 rows, i64 columns, i64 row_stride_bytes,
                                       i64 column_stride_bytes) {
  using Element = typename Layout::Element;
  const int rank = block_rank();
  const auto array = along_lines<Layout>((ArrayElement*)gmem, rows, columns, row_stride_bytes, column_stride_bytes);
  if (!store_if_packed<WarpTiles<Layout, kThreads, kStrideBytes>>(rank, smem, array)) {
    copy_out<Layout, kThreads>((u32)rank % kThreads, (const Element*)smem, array);
  }
}
#endif

}  // namespace devmath
