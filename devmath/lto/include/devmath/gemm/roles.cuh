// Blocks of a grid and warpgroups of a block that do different work: some end early, the others take over their
// registers (sm_90a).
//
// Where there is no GPU these are declarations only: whoever runs the threads of a block defines them.
#pragma once

#include "../platform.cuh"

namespace devmath {

#if DEVMATH_ON_GPU

/// Number of the block, and of blocks, along x.
DEVMATH_DEVICE u32 grid_rank() { return blockIdx.x; }
DEVMATH_DEVICE u32 grid_size() { return gridDim.x; }

DEVMATH_DEVICE void synchronize_block() { __syncthreads(); }
DEVMATH_DEVICE void synchronize_warp() { __syncwarp(); }

/// x, which is the same for all threads of a warp, in a form that tells the compiler so.
DEVMATH_DEVICE int same_in_warp(int x) { return __shfl_sync(0xffffffffu, x, 0); }

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

/// Ends the kernel with an error.
DEVMATH_DEVICE void end_kernel() { asm volatile("trap;"); }

#else

u32 grid_rank();
u32 grid_size();
void synchronize_block();
void synchronize_warp();
inline int same_in_warp(int x) { return x; }
template <int kRegisters> void give_registers() {}
template <int kRegisters> void take_registers() {}
[[noreturn]] void end_thread();
[[noreturn]] void end_kernel();

#endif

}  // namespace devmath
