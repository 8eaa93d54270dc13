// Accumulators of wgmma to a matrix in global memory by TMA, through shared memory (sm_90a).
//
// Each warp has 16 rows of a tile, and stores them in slices as wide as a line of 128 bytes. It has a few buffers of
// one slice each, so that one slice is written while another one leaves; no barrier of the block is needed. Lines have
// the 128-byte swizzle: chunk c of 16 bytes of line l lies at chunk c ^ l % 8. What lies past the edges of the matrix
// is left out by the copy.
#pragma once

#include "../fragment.cuh"
#include "../tma.cuh"
#include "roles.cuh"
#include "scheduler.cuh"

namespace devmath {

/// What a warp keeps in shared memory.
struct StoreBuffers {
  static constexpr int count = 2, lines = 16, line_bytes = 128, bytes = lines * line_bytes;
  static constexpr int warp_bytes = count * bytes;
};

#if DEVMATH_ON_GPU

/// Four 8x8 matrices of 16-bit elements: lane l passes the address of row l % 8 of matrix l / 8, and register q holds
/// elements (lane / 4, 2 (lane % 4) + {0, 1}) of matrix q.
DEVMATH_DEVICE void stmatrix_x4(SmemAddress row, const u32* rmem) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(rmem[0]),
               "r"(rmem[1]), "r"(rmem[2]), "r"(rmem[3])
               : "memory");
}
DEVMATH_DEVICE void write_pair(SmemAddress smem, float first, float second) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(smem), "f"(first), "f"(second) : "memory");
}

#else

void stmatrix_x4(SmemAddress row, const u32* rmem);
void write_pair(SmemAddress smem, float first, float second);

#endif

/// Passes of kN columns of a fragment, converted to Element.
template <typename Fragment, int kN, typename Element>
struct TmaStore {
  using Buffers = StoreBuffers;
  static constexpr int slice = Buffers::line_bytes / sizeof(Element);  // columns
  static constexpr int pass = kN / 2, slice_size = slice / 2;          // registers
  static_assert(kN % slice == 0, "TmaStore: a pass must be whole slices");
  // Where a tile does not end with the last buffer, the next one begins with a buffer that may just be leaving.
  static constexpr int pending = Fragment::size / slice_size % Buffers::count == 0 ? Buffers::count - 1 : 0;

  /// `smem` is the first buffer of the calling warp; `map` has boxes of one slice.
  DEVMATH_DEVICE static void store(const TileCursor& cursor, SmemAddress smem, const float* rmem_acc, const void* map) {
    const int lane = block_rank() % 32, leader = block_rank() - lane;
    const int row = cursor.row + Fragment::row(leader, 0), col = cursor.col + Fragment::col(leader, 0);
    DEVMATH_UNROLL
    for (int first = 0; first < Fragment::size; first += slice_size) {
      const SmemAddress buffer = smem + first / slice_size % Buffers::count * Buffers::bytes;
      if (lane == 0) wait_for_boxes_read<pending>();  // this buffer has left
      synchronize_warp();
      write_slice(buffer, lane, rmem_acc + first);
      fence_writes_for_boxes();
      synchronize_warp();
      if (lane == 0) store_box(map, buffer, col + Fragment::col(0, first), row + Fragment::row(0, first));
    }
  }

 private:
  DEVMATH_DEVICE static SmemAddress place(SmemAddress buffer, int line, int chunk) {
    return buffer + line * Buffers::line_bytes + (chunk ^ line % 8) * 16;
  }

  DEVMATH_DEVICE static void write_slice(SmemAddress buffer, int lane, const float* sums) {
    if constexpr (sizeof(Element) == 2) {
      DEVMATH_UNROLL
      for (int i = 0; i < slice_size; i += 8) {  // 16 columns
        u32 rmem[4];
        DEVMATH_UNROLL
        for (int q = 0; q < 4; ++q) {
          const Element low = convert<Element>(sums[i + 2 * q]), high = convert<Element>(sums[i + 2 * q + 1]);
          rmem[q] = low.bits | (u32)high.bits << 16;
        }
        stmatrix_x4(place(buffer, lane % 16, i / 4 + lane / 16), rmem);
      }
    } else {
      DEVMATH_UNROLL
      for (int i = 0; i < slice_size; i += 2) {  // two neighbours
        const int line = lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2;
        write_pair(place(buffer, line, column / 4) + column % 4 * 4, sums[i], sums[i + 1]);
      }
    }
  }
};

}  // namespace devmath
