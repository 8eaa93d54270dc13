// Whole matrix products on sm_90a: one warpgroup brings tiles of A and B by TMA, the others multiply them by wgmma.
//
//   begin     once, by every thread; the loading warpgroup, the first of the block, stays inside and ends there
//   advance   to the next tile of C; cursor.has_tile says whether there is one
//   multiply  the sums of the tile, over the whole of k
//
// The loader goes through all tiles of the block on its own: during the epilog of one tile the ring fills for the next.
// It takes its order of tiles from the same schedule as the others, and both count the same steps a tile: at least
// one, so that k = 0 needs no case of its own (its one box lies past the edge and brings zeros).
//
// A is read by warpgroup w from the rows that its fragment starts with. A warpgroup has one group of wgmma under way
// while it waits for the next stage; the first step of a tile sets the sums, where adding to zeros would make the
// compiler serialise.
#pragma once

#include "../tma.cuh"
#include "../wgmma.cuh"
#include "block.cuh"
#include "ring.cuh"
#include "roles.cuh"
#include "scheduler.cuh"
#include "store_tma.cuh"

namespace devmath {

#if DEVMATH_ON_GPU

DEVMATH_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits for all groups of this warpgroup but the newest kPending.
template <int kPending>
DEVMATH_DEVICE void wgmma_wait_for_groups() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

#else

void wgmma_commit();
template <int kPending> void wgmma_wait_for_groups();

#endif

/// An operand whose tiles are panels of TMA boxes, one swizzle wide.
template <typename Operand>
struct BoxedOperand {
  using Layout = typename Operand::Layout;
  static constexpr int item_bytes = sizeof(typename Operand::Element);
  static constexpr int line_bytes = Layout::ld * item_bytes;
  static constexpr int panel_bytes = Layout::lines_allocated * line_bytes;
  static constexpr int panels = divide_up(Layout::line_length, Layout::ld);
  static constexpr int is_mn_major = !Operand::k_contiguous;
  static constexpr int box_bytes = panels * panel_bytes;

  /// Brings the tile at (outer, k) of the matrix.
  DEVMATH_DEVICE static void load(SmemAddress smem, const void* map, SmemAddress barrier, int outer, int k) {
    DEVMATH_UNROLL
    for (int panel = 0; panel < panels; ++panel) {
      const int x = (is_mn_major ? outer : k) + panel * Layout::ld, y = is_mn_major ? k : outer;
      load_box(smem + panel * panel_bytes, map, barrier, x, y);
    }
  }

  /// Bytes from the start of the tile to (outer, k): multiples of 8 or of a panel, and of 16.
  DEVMATH_DEVICE static constexpr int distance_bytes(int outer, int k) {
    return is_mn_major ? outer / Layout::ld * panel_bytes + k * line_bytes
                       : k / Layout::ld * panel_bytes + k % Layout::ld * item_bytes + outer * line_bytes;
  }

  DEVMATH_DEVICE static MatrixDescriptor first(SmemAddress smem) {
    // K-major instructions ignore the leading bytes; PTX wants 16 there.
    return MatrixDescriptor(smem, is_mn_major ? panel_bytes : 16, 8 * line_bytes, Layout::swizzle);
  }
};

/// kN columns an instruction; kThreads threads multiply. Registers of 0 stay what they are.
template <typename Fragment, int kN, typename A, typename B, typename Stage, typename Accumulator, int kThreads,
          int kStages, int kGroup, int kLoaderRegisters, int kRegisters>
struct TmaMainloop {
  static constexpr int warpgroup = 128, k_step = A::cols, pass = kN / 2;
  static constexpr int instruction_k = 32 / sizeof(typename A::Element);
  using Schedule = TileSchedule<A::rows, B::cols, kGroup>;
  using Position = RingPosition<kStages>;
  using BoxedA = BoxedOperand<OperandA<A>>;
  using BoxedB = BoxedOperand<OperandB<B>>;
  using Instruction = Wgmma<kN, typename A::Element, typename B::Element>;

  struct State {
    TileCursor cursor;
    Position position;
    SmemAddress smem;
    int steps, group_row, group_col;  // steps a tile; where the warpgroup's part of it begins
  };

  DEVMATH_DEVICE static void begin(State& state, void* smem, const void* map_a, const void* map_b, i64 rows, i64 cols,
                                   i64 depth) {
    state.smem = smem_address(smem);
    state.steps = depth > 0 ? (int)((depth + k_step - 1) / k_step) : 1;
    state.position = {0, 0};
    Schedule::begin(state.cursor, (int)rows, (int)cols, grid_rank(), grid_size());
    if (block_rank() == 0) {
      prefetch_tensor_map(map_a);
      prefetch_tensor_map(map_b);
      for (int stage = 0; stage < kStages; ++stage) {
        mbarrier_init(full(state.smem, stage), 1);
        mbarrier_init(empty(state.smem, stage), kThreads / 32);
      }
      mbarrier_fence_init();
    }
    synchronize_block();
    const int group = same_in_warp(block_rank() / warpgroup);
    if (group == 0) {
      if constexpr (kRegisters > 0) give_registers<kLoaderRegisters>();
      if (block_rank() == 0) load_all(state, map_a, map_b, depth > 0 ? 0 : k_step);
      end_thread();
    }
    if constexpr (kRegisters > 0) take_registers<kRegisters>();
    state.group_row = Fragment::row(group * warpgroup, 0);
    state.group_col = Fragment::col(group * warpgroup, 0);
  }

  DEVMATH_DEVICE static void advance(State& state) {
    if (state.cursor.has_tile && !state.cursor.is_multiplied) skip(state);
    Schedule::advance(state.cursor);
    if (!state.cursor.has_tile) wait_for_boxes_read<0>();  // before the block's shared memory is gone
  }

  DEVMATH_DEVICE static void multiply(State& state, Accumulator* rmem_acc) {
    // A second product of one tile would take the operands of the next.
    if (state.cursor.is_multiplied) end_kernel();
    u32 previous = state.position.stage;
    step<false>(state, rmem_acc);
#pragma unroll 1
    for (int i = 1; i < state.steps; ++i) {
      const u32 stage = state.position.stage;
      step<true>(state, rmem_acc);
      wgmma_wait_for_groups<1>();
      release(state, previous);
      previous = stage;
    }
    wgmma_wait_for_groups<0>();
    release(state, previous);
    state.cursor.is_multiplied = 1;
  }

  /// The sums, or what became of them, to the matrix of `map`, whose elements are of type Element.
  template <typename Element>
  DEVMATH_DEVICE static void store(const State& state, const Accumulator* rmem_acc, const void* map) {
    const int warp = (block_rank() - warpgroup) / 32;
    const SmemAddress buffers = state.smem + kStages * Stage::bytes + warp * StoreBuffers::warp_bytes;
    TmaStore<Fragment, kN, Element>::store(state.cursor, buffers, rmem_acc, map);
  }

 private:
  // Stages, buffers of the store, barriers.
  DEVMATH_DEVICE static SmemAddress full(SmemAddress smem, u32 stage) {
    constexpr int before = kStages * Stage::bytes + kThreads / 32 * StoreBuffers::warp_bytes;
    return smem + before + stage * 2 * kMbarrierBytes;
  }
  DEVMATH_DEVICE static SmemAddress empty(SmemAddress smem, u32 stage) { return full(smem, stage) + kMbarrierBytes; }

  /// The whole life of the loading thread: every step of every tile of the block.
  DEVMATH_DEVICE static void load_all(State& state, const void* map_a, const void* map_b, int first_k) {
    for (Schedule::advance(state.cursor); state.cursor.has_tile; Schedule::advance(state.cursor)) {
#pragma unroll 1
      for (int i = 0; i < state.steps; ++i) {
        const u32 stage = state.position.stage;
        const SmemAddress smem = state.smem + stage * Stage::bytes, barrier = full(state.smem, stage);
        mbarrier_wait(empty(state.smem, stage), state.position.parity ^ 1);
        mbarrier_arrive_and_expect(barrier, BoxedA::box_bytes + BoxedB::box_bytes);
        BoxedA::load(smem, map_a, barrier, state.cursor.row, first_k + i * k_step);
        BoxedB::load(smem + Stage::a_bytes, map_b, barrier, state.cursor.col, first_k + i * k_step);
        state.position.advance();
      }
    }
  }

  /// Issues the products of one stage as one group, and goes to the next stage.
  template <bool kAdds>
  DEVMATH_DEVICE static void step(State& state, Accumulator* rmem_acc) {
    const SmemAddress smem = state.smem + state.position.stage * Stage::bytes;
    const MatrixDescriptor a = BoxedA::first(smem + BoxedA::distance_bytes(state.group_row, 0));
    const MatrixDescriptor b = BoxedB::first(smem + Stage::a_bytes + BoxedB::distance_bytes(state.group_col, 0));
    mbarrier_wait(full(state.smem, state.position.stage), state.position.parity);
    wgmma_fence();
    issue<kAdds, 0>(rmem_acc, a, b);
    wgmma_commit();
    state.position.advance();
  }

  template <bool kAdds, int kK>
  DEVMATH_DEVICE static void issue(Accumulator* rmem_acc, MatrixDescriptor a, MatrixDescriptor b) {
    if constexpr (kK < k_step) {
      DEVMATH_UNROLL
      for (int first = 0; first < Fragment::size; first += pass) {
        const int row = Fragment::row(0, first), col = Fragment::col(0, first);
        Instruction::template multiply<BoxedA::is_mn_major, BoxedB::is_mn_major>(
            rmem_acc + first, a.advanced(BoxedA::distance_bytes(row, kK)), b.advanced(BoxedB::distance_bytes(col, kK)),
            kAdds);
      }
      issue<true, kK + instruction_k>(rmem_acc, a, b);
    }
  }

  /// Passes over the stages of a tile that the caller did not multiply. Nothing but this keeps the lanes in step.
  DEVMATH_DEVICE static void skip(State& state) {
#pragma unroll 1
    for (int i = 0; i < state.steps; ++i) {
      mbarrier_wait(full(state.smem, state.position.stage), state.position.parity);
      synchronize_warp();
      release(state, state.position.stage);
      state.position.advance();
    }
  }

  /// Says that this warp has read a stage. Each does for itself: one that lags must not miss a phase of the ring.
  DEVMATH_DEVICE static void release(const State& state, u32 stage) {
    if (block_rank() % 32 == 0) mbarrier_arrive(empty(state.smem, stage));
  }
};

}  // namespace devmath
