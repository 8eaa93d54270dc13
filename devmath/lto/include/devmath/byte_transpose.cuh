// Loads of tiles of single bytes from arrays whose bytes lie across the lines of the tile.
//
// A thread transposes 4 x 4 bytes in registers: four words of the array, each of neighbours on four lines, become four
// words of the tile. A warp takes 32 lines by 16 positions: whole sectors of 32 bytes of the array.
#pragma once

#include "layout.cuh"
#include "strided_array.cuh"

namespace devmath {

/// Byte i of the result is that of {x, y}, eight bytes, which digit i of the selector counts.
DEVMATH_DEVICE u32 pick_bytes(u32 x, u32 y, u32 selector) {
#if DEVMATH_ON_GPU
  return __byte_perm(x, y, selector);
#else
  const u64 both = (u64)y << 32 | x;
  u32 picked = 0;
  for (int i = 0; i < 4; ++i) picked |= (u32)(u8)(both >> (8 * (selector >> (4 * i) & 7))) << (8 * i);
  return picked;
#endif
}

/// Byte i of word j becomes byte j of word i.
DEVMATH_DEVICE void transpose_bytes(u32 (&words)[4]) {
  const u32 low01 = pick_bytes(words[0], words[1], 0x5140), high01 = pick_bytes(words[0], words[1], 0x7362);
  const u32 low23 = pick_bytes(words[2], words[3], 0x5140), high23 = pick_bytes(words[2], words[3], 0x7362);
  words[0] = pick_bytes(low01, low23, 0x5410);
  words[1] = pick_bytes(low01, low23, 0x7632);
  words[2] = pick_bytes(high01, high23, 0x5410);
  words[3] = pick_bytes(high01, high23, 0x7632);
}

/// Four neighbours on lines line .. line + 3, zeros where the array ends.
template <typename Byte>
DEVMATH_DEVICE u32 load_across_lines(StridedArray<const Byte> gmem, int line, int position) {
  if (gmem.contains(line + 3, position)) return *(const u32*)gmem.at(line, position);
  u32 word = 0;
  for (int i = 0; i < 3; ++i) {
    if (gmem.contains(line + i, position)) word |= (u32)*(const u8*)gmem.at(line + i, position) << (8 * i);
  }
  return word;
}

/// Fills the tile from an array, its rows along the lines of the tile, that is contiguous down its columns, each of
/// which begins at a multiple of 4 bytes.
template <typename Layout, int kThreads>
DEVMATH_DEVICE void load_transposed_bytes(int rank, typename Layout::Element* smem,
                                          StridedArray<const typename Layout::Element> gmem) {
  constexpr int kLineBlocks = divide_up(Layout::lines, 32), kPositionBlocks = divide_up(Layout::line_length, 16);
#pragma unroll 2
  for (int cell = rank; cell < kLineBlocks * kPositionBlocks * 32; cell += kThreads) {
    const int block = (u32)cell / 32, lane = (u32)cell % 32;
    const int line = (u32)block % kLineBlocks * 32 + lane / 4 * 4;
    const int position = (u32)block / kLineBlocks * 16 + lane % 4 * 4;
    if (line >= Layout::lines || position >= Layout::line_length) continue;
    u32 words[4];
    DEVMATH_UNROLL
    for (int i = 0; i < 4; ++i) words[i] = load_across_lines(gmem, line, position + i);
    transpose_bytes(words);
    DEVMATH_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (line + i < Layout::lines) *(u32*)(smem + Layout::line_offset(line + i, position)) = words[i];
    }
  }
}

}  // namespace devmath
