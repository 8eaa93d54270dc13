// Warpgroups of one block that do different work (sm_90a): some end early, the others take over their registers.
#pragma once

#include "../platform.cuh"

namespace devmath {

#if DEVMATH_ON_GPU

/// Sets the registers of each thread of a warpgroup, all of which call; those taken must have been given by others.
template <int kRegisters>
DEVMATH_DEVICE void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
DEVMATH_DEVICE void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// Barriers of the block go on without this thread.
DEVMATH_DEVICE void end_thread() {
  asm volatile("exit;");
  __builtin_unreachable();
}

#endif

}  // namespace devmath
