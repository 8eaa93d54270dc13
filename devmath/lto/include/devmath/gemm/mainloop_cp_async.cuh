// Whole matrix products on any target: tiles of A and B pass through a ring of stages by cp.async, and a Block of
// block.cuh multiplies them.
//
//   begin     once, by every thread
//   advance   to the next tile of C; cursor.has_tile says whether there is one
//   multiply  the sums of the tile, over the whole of k
//
// All threads of a block load and multiply, kIdleThreads excepted, the first of the block: they end in begin(), and the
// others take their registers.
// Arrays have any strides; what lies past their edges counts as zero.
#pragma once

#include "../tile_copy.cuh"
#include "block.cuh"
#include "ring.cuh"
#include "roles.cuh"
#include "scheduler.cuh"

namespace devmath {

/// A matrix in global memory.
struct GmemMatrix {
  const void* base;
  i64 rows, cols, row_stride_bytes, col_stride_bytes;

  /// The part of it from (row, col) on that a tile covers, rows along the lines of the tile.
  template <typename Layout>
  DEVMATH_DEVICE StridedArray<const typename Layout::Element> part(int row, int col) const {
    using Element = const typename Layout::Element;
    const char* const first = (const char*)base + row * row_stride_bytes + col * col_stride_bytes;
    return along_lines<Layout>((Element*)first, rows - row, cols - col, row_stride_bytes, col_stride_bytes);
  }
};

#if DEVMATH_ON_GPU

template <typename Block, typename A, typename B, typename Stage, typename Accumulator, int kThreads, int kIdleThreads,
          int kStages, int kGroup, int kIdleRegisters, int kRegisters>
struct CpAsyncMainloop {
  static_assert(kStages >= 2, "CpAsyncMainloop: one stage is loaded while another is multiplied");
  using Schedule = TileSchedule<A::rows, B::cols, kGroup>;
  static constexpr int k_step = A::cols;

  struct State {
    TileCursor cursor;
    GmemMatrix a, b;
    char* smem;
  };

  DEVMATH_DEVICE static void begin(State& state, void* smem, GmemMatrix a, GmemMatrix b, i64 rows, i64 cols) {
    if (kIdleThreads > 0 && block_rank() < kIdleThreads) {
      if constexpr (kRegisters > 0) give_registers<kIdleRegisters>();
      end_thread();
    }
    if constexpr (kRegisters > 0) take_registers<kRegisters>();
    state.a = a;
    state.b = b;
    state.smem = (char*)smem;
    Schedule::begin(state.cursor, (int)rows, (int)cols, grid_rank(), grid_size());
  }

  DEVMATH_DEVICE static void advance(State& state) { Schedule::advance(state.cursor); }

  DEVMATH_DEVICE static void multiply(State& state, Accumulator* rmem_acc) {
    const int steps = (int)((state.a.cols + k_step - 1) / k_step);
    DEVMATH_UNROLL
    for (int i = 0; i < Block::Fragment::size; ++i) rmem_acc[i] = Accumulator{};
    synchronize();  // every thread is done with the tile before
#pragma unroll 1
    for (int step = 1 - kStages; step < steps; ++step) {
      if (step >= 0) {
        wait_for_oldest_copies();
        synchronize();  // the copies of all threads have landed, and all have left the stage that is filled next
      }
      if (step + kStages - 1 < steps) load(state, step + kStages - 1);
      asm volatile("cp.async.commit_group;" ::: "memory");
      if (step >= 0) {
        const char* const stage = state.smem + stage_offset(step);
        register_form<Block>(OperandA<A>(stage, A::ld), OperandB<B>(stage + Stage::a_bytes, B::ld), rmem_acc);
      }
    }
    state.cursor.is_multiplied = 1;
  }

 private:
  DEVMATH_DEVICE static u32 stage_offset(int step) { return (u32)step % kStages * Stage::bytes; }

  DEVMATH_DEVICE static void load(const State& state, int step) {
    const int rank = block_rank() - kIdleThreads, k = step * k_step;
    char* const smem_a = state.smem + stage_offset(step);
    char* const smem_b = smem_a + Stage::a_bytes;
    copy_in<A, kThreads>(rank, (typename A::Element*)smem_a, state.a.template part<A>(state.cursor.row, k));
    copy_in<B, kThreads>(rank, (typename B::Element*)smem_b, state.b.template part<B>(k, state.cursor.col));
  }

  /// Of the kStages - 1 groups under way, and makes what this thread wrote visible to wgmma.
  DEVMATH_DEVICE static void wait_for_oldest_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
  }

  /// A barrier of the threads that multiply; 0 is the caller's own, __syncthreads().
  DEVMATH_DEVICE static void synchronize() { asm volatile("bar.sync 1, %0;" ::"n"(kThreads) : "memory"); }
};

#endif

}  // namespace devmath
