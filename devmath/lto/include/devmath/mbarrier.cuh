// Barriers in shared memory: PTX mbarrier (sm_90 and later), for copies that complete by themselves.
//
// A barrier counts arrivals and, apart from those, bytes that are still to land. When both are complete its phase flips
// and the counts start anew. Phases are told apart by parity: before the first flip the phase of parity 0 is under way
// and that of parity 1 counts as over. A wait that looks back further than one phase does not return.
//
// A wait without end hangs the GPU. Where DEVMATH_WAIT_LIMIT_NS is defined, one that takes longer ends the kernel.
//
// Where there is no GPU these are declarations only: whoever runs the threads of a block defines them.
#pragma once

#include "mma.cuh"

namespace devmath {

constexpr int kMbarrierBytes = 8;

#if DEVMATH_ON_GPU

/// By one thread; mbarrier_fence_init() follows the last one, and a barrier of the block.
DEVMATH_DEVICE void mbarrier_init(SmemAddress barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
DEVMATH_DEVICE void mbarrier_fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

DEVMATH_DEVICE void mbarrier_arrive(SmemAddress barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Arrives, and has the phase wait for `bytes` more that copies will report.
DEVMATH_DEVICE void mbarrier_arrive_and_expect(SmemAddress barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/// Whether the phase of `parity` is over; suspends the thread for a while before it says no.
DEVMATH_DEVICE bool mbarrier_is_over(SmemAddress barrier, u32 parity) {
  u32 over;
  asm volatile(
      "{.reg .pred over; mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2; selp.u32 %0, 1, 0, over;}"
      : "=r"(over) : "r"(barrier), "r"(parity) : "memory");
  return over != 0;
}

/// Waits until the phase of `parity` is over.
DEVMATH_DEVICE void mbarrier_wait(SmemAddress barrier, u32 parity) {
#ifdef DEVMATH_WAIT_LIMIT_NS
  u64 began, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
  while (!mbarrier_is_over(barrier, parity)) {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (now - began > DEVMATH_WAIT_LIMIT_NS) asm volatile("trap;");
  }
#else
  while (!mbarrier_is_over(barrier, parity)) {
  }
#endif
}

#else

void mbarrier_init(SmemAddress barrier, int arrivals);
inline void mbarrier_fence_init() {}
void mbarrier_arrive(SmemAddress barrier);
void mbarrier_arrive_and_expect(SmemAddress barrier, int bytes);
void mbarrier_wait(SmemAddress barrier, u32 parity);

#endif

}  // namespace devmath
