// Which transform and which of its elements a thread of the block holds, and how the threads of a transform meet.
//
//   transform of the block f = rank / T,   thread of the transform t = rank % T,   T = n / elements_per_thread
#pragma once

#include "../platform.cuh"

#if !DEVMATH_ON_GPU
namespace devmath {
// On a CPU the program that runs the threads of a block defines these two.
int block_rank();
void wait_for_block();
}  // namespace devmath
#endif

namespace devmath::fft {

template <typename Plan>
constexpr int kThreadsPerFft = Plan::kN / Plan::kElementsPerThread;

template <typename Plan>
DEVMATH_DEVICE int transform_of_block() { return (u32)block_rank() / kThreadsPerFft<Plan>; }

/// Each call gives a value of its own to the compiler. Else the addresses of every stage, which follow from it, stay in
/// registers until the kernel's next transform or its store.
template <typename Plan>
DEVMATH_DEVICE int thread_of_transform() {
  int t = (u32)block_rank() % kThreadsPerFft<Plan>;
#if DEVMATH_ON_GPU
  asm volatile("mov.u32 %0, %0;" : "+r"(t));
#endif
  return t;
}

/// Orders the shared-memory accesses of the threads of a transform. A transform of at most 32 threads lies in one
/// warp, since T divides 32. Larger ones share the block's barrier: one named barrier a transform would reserve all 16.
template <typename Plan>
DEVMATH_DEVICE void synchronize() {
#if DEVMATH_ON_GPU
  constexpr int kThreads = kThreadsPerFft<Plan>;
  if constexpr (kThreads > 32) {
    __syncthreads();
  } else if constexpr (kThreads * Plan::kFftsPerBlock % 32 == 0) {
    __syncwarp();
  } else {  // the last warp is not full: name the lanes of this transform only
    __syncwarp((0xffffffffu >> (32 - kThreads)) << ((u32)block_rank() % 32 / kThreads * kThreads));
  }
#else
  wait_for_block();
#endif
}

}  // namespace devmath::fft
