// Copies of boxes of a matrix between global and shared memory by TMA (PTX cp.async.bulk.tensor, sm_90 and later).
//
// A tensor map, made on the host, says where the matrix lies, how large a box is and how its lines are swizzled. One
// thread issues a copy; x counts elements along the lines of the matrix, y lines. Elements past the edges are written
// as zeros to shared memory, and not at all to global memory. Tiles in shared memory start at a multiple of 128 bytes,
// swizzled ones where the swizzle starts to repeat. Where there is no GPU these are declarations only.
#pragma once

#include "mbarrier.cuh"

namespace devmath {

#if DEVMATH_ON_GPU

/// `map` is the address of a kernel parameter, in generic form like any pointer.
DEVMATH_DEVICE void prefetch_tensor_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/// Brings the box at (x, y); its bytes, those past the edges included, count at `barrier`.
DEVMATH_DEVICE void load_box(SmemAddress smem, const void* map, SmemAddress barrier, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          smem),
      "l"(map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}

/// Between ordinary writes to shared memory, by each thread that wrote, and a copy that reads them; a barrier follows.
DEVMATH_DEVICE void fence_writes_for_boxes() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// Takes the box at (x, y) from shared memory, as one group of copies of this thread.
DEVMATH_DEVICE void store_box(const void* map, SmemAddress smem, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1]; cp.async.bulk.commit_group;" ::"l"(
          map),
      "r"(smem), "r"(x), "r"(y)
      : "memory");
}

/// Waits until all groups of this thread but the newest kPending have been read from shared memory.
template <int kPending>
DEVMATH_DEVICE void wait_for_boxes_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

#else

inline void prefetch_tensor_map(const void*) {}
void load_box(SmemAddress smem, const void* map, SmemAddress barrier, int x, int y);
inline void fence_writes_for_boxes() {}
void store_box(const void* map, SmemAddress smem, int x, int y);
template <int kPending> void wait_for_boxes_read();

#endif

}  // namespace devmath
