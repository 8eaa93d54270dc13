// Copies of boxes of a matrix between global and shared memory by TMA (PTX cp.async.bulk.tensor, sm_90 and later).
//
// A tensor map, made on the host, says where the matrix lies, how large a box is and how its lines are swizzled. One
// thread issues a copy; x counts elements along the lines of the matrix, y lines. Elements past the edges are written
// as zeros to shared memory, and not at all to global memory. Tiles in shared memory start at a multiple of 128 bytes,
// swizzled ones where the swizzle starts to repeat.
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

#endif

}  // namespace devmath
