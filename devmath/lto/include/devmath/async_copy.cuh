// Copies from global to shared memory that do not pass through registers: PTX cp.async (sm_80 and later).
//
// A thread issues copies, commits those issued since its last commit as one group, and goes on. Groups land in order:
// after cp.async.wait_group n all but the newest n of the thread's own have landed, after a barrier of the block those
// of the other threads too. In plain C++ a copy is done when it is issued.
#pragma once

#include "platform.cuh"

namespace devmath {

/// Copies the first `valid_bytes` of kBytes from gmem to smem and writes zeros to the rest; both pointers are multiples
/// of kBytes. Nothing is read past `valid_bytes`, so with 0 the source may lie anywhere.
template <int kBytes>
DEVMATH_DEVICE void copy_async(void* smem, const void* gmem, int valid_bytes) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "copy_async: cp.async moves 4, 8 or 16 bytes");
#if DEVMATH_ON_GPU
  const u32 target = (u32)__cvta_generic_to_shared(smem);
  const u64 source = __cvta_generic_to_global(gmem);
  // Only 16-byte copies may bypass L1 (.cg).
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(valid_bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(target), "l"(source), "n"(kBytes),
                 "r"(valid_bytes)
                 : "memory");
  }
#else
  __builtin_memset(smem, 0, kBytes);
  __builtin_memcpy(smem, gmem, valid_bytes);
#endif
}

#if DEVMATH_ON_GPU
/// Makes one group of the copies issued since the last commit; of none, too.
DEVMATH_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
#endif

}  // namespace devmath
