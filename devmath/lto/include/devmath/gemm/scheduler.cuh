// Which tiles of C a block computes, and in which order: a persistent schedule that needs no memory.
//
// Tiles are numbered; block b of B blocks computes b, b + B, b + 2 B, ... The numbers run through groups of kGroup rows
// of tiles, down the rows of a group before they go on to its next column: tiles that are computed at one time share
// rows of A and columns of B, so that most of what they read is in the L2 cache.
#pragma once

#include "../platform.cuh"

namespace devmath {

/// The tile that a block is at. The front end reads the members before `step`: keep them in this order.
struct TileCursor {
  int row, col;       // of its first element, in C
  int rows, cols;     // of the tile that lie in C
  int has_tile;       // 0 after the last one
  int is_multiplied;  // 1 once its sums are complete
  u32 step, next, count;
  int matrix_rows, matrix_cols;
};

/// Tiles of kRows x kCols elements.
template <int kRows, int kCols, int kGroup>
struct TileSchedule {
  /// Before the first tile of block `block` of `blocks`.
  DEVMATH_DEVICE static void begin(TileCursor& cursor, int matrix_rows, int matrix_cols, u32 block, u32 blocks) {
    cursor = {};
    cursor.step = blocks;
    cursor.next = block;
    cursor.count = (u32)tiles_down(matrix_rows) * (u32)tiles_across(matrix_cols);
    cursor.matrix_rows = matrix_rows;
    cursor.matrix_cols = matrix_cols;
  }

  /// Goes to the next tile.
  DEVMATH_DEVICE static void advance(TileCursor& cursor) {
    cursor.has_tile = cursor.next < cursor.count;
    cursor.is_multiplied = 0;
    if (!cursor.has_tile) return;
    place(cursor, cursor.next);
    cursor.next += cursor.step;
  }

 private:
  DEVMATH_DEVICE static int tiles_down(int rows) { return (int)(((u32)rows + kRows - 1) / kRows); }
  DEVMATH_DEVICE static int tiles_across(int cols) { return (int)(((u32)cols + kCols - 1) / kCols); }
  DEVMATH_DEVICE static int at_most(int x, int limit) { return x < limit ? x : limit; }

  DEVMATH_DEVICE static void place(TileCursor& cursor, u32 tile) {
    const u32 down = tiles_down(cursor.matrix_rows), group_size = kGroup * (u32)tiles_across(cursor.matrix_cols);
    const u32 group = tile / group_size, in_group = tile - group * group_size;
    const u32 first = group * kGroup, height = down - first < kGroup ? down - first : kGroup;
    const u32 across = in_group / height;
    cursor.row = (int)(first + in_group - across * height) * kRows;
    cursor.col = (int)across * kCols;
    cursor.rows = at_most(cursor.matrix_rows - cursor.row, kRows);
    cursor.cols = at_most(cursor.matrix_cols - cursor.col, kCols);
  }
};

}  // namespace devmath
