// Fragments reduced along their rows: one value for each row of the tile, in every thread that holds some of the row.
//
// A *row vector* is a thread's share of such values: slot s belongs to the rows of the registers whose digits of the
// row are combination s (Digits::slot). Columns are the rows of the transposed fragment.
//
// A thread reduces its registers; lanes that share a row exchange results by shuffles; warps that share one do so
// through shared memory. Every thread of the block calls. Where `smem_in_use`, the block first waits: threads may still
// read what an earlier call left there.
#pragma once

#include "fragment.cuh"
#include "lanes.cuh"
#include "scalar.cuh"

#if !DEVMATH_ON_GPU
namespace devmath {
void wait_for_block();  // defined by the program that runs the threads of a block
}
#endif

namespace devmath {

#if DEVMATH_ON_GPU
DEVMATH_DEVICE void wait_for_block() { __syncthreads(); }
#endif

/// The larger and the smaller one; NaN where either is.
template <typename T>
DEVMATH_DEVICE T larger(T a, T b) { return a > b || a != a ? a : b; }
template <typename T>
DEVMATH_DEVICE T smaller(T a, T b) { return a < b || a != a ? a : b; }
#if DEVMATH_ON_GPU
DEVMATH_DEVICE float larger(float a, float b) {
  float c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
DEVMATH_DEVICE float smaller(float a, float b) {
  float c;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
#endif

/// The end of a type: infinity, or the largest integer.
template <typename T>
DEVMATH_DEVICE T largest() {
  if constexpr (IsSame<T, int>::value) {
    return 0x7fffffff;
  } else {
    return (T)bits_float(0x7f800000u);
  }
}

template <typename T>
DEVMATH_DEVICE T least() {
  if constexpr (IsSame<T, int>::value) {
    return -largest<int>() - 1;
  } else {
    return -largest<T>();
  }
}

struct Max {
  template <typename T> DEVMATH_DEVICE static T identity() { return least<T>(); }
  template <typename T> DEVMATH_DEVICE static T combine(T a, T b) { return larger(a, b); }
};
struct Min {
  template <typename T> DEVMATH_DEVICE static T identity() { return largest<T>(); }
  template <typename T> DEVMATH_DEVICE static T combine(T a, T b) { return smaller(a, b); }
};
struct Sum {
  template <typename T> DEVMATH_DEVICE static T identity() { return T{}; }
  template <typename T> DEVMATH_DEVICE static T combine(T a, T b) { return a + b; }
  DEVMATH_DEVICE static int combine(int a, int b) { return (int)((u32)a + (u32)b); }  // wraps around
};

/// The threads that share the rows of a fragment.
template <typename Fragment>
struct SharersOf {
  using Across = typename Fragment::ColOfThread;
  static constexpr int lane_bits = Across::bits_below(32);
  static constexpr int warps = Across::count_from(32);
  static constexpr int rows_reached = Fragment::RowOfThread::maximum + Fragment::RowOfRegister::maximum + 1;

  /// Which of the warps that share its rows a thread is in.
  DEVMATH_DEVICE static int warp(int rank) { return Across::slot_from(32, rank); }
  /// Of the threads that share a row in a warp, one writes.
  DEVMATH_DEVICE static bool writes(int rank) { return (rank & lane_bits) == 0; }
  /// Any register of a slot.
  DEVMATH_DEVICE static constexpr int register_of(int slot) { return Fragment::RowOfRegister::holder(slot); }
};

/// values[slot] = what `Operation` makes of this thread's registers in the slot's rows.
template <typename Operation, typename Fragment, typename Element, typename Value>
DEVMATH_DEVICE void reduce_registers(int rank, const Element* rmem, Value* values) {
  using Across = typename Fragment::ColOfRegister;
  constexpr bool is_whole = Fragment::ColOfThread::maximum + Across::maximum < Fragment::cols;
  DEVMATH_UNROLL
  for (int i = 0; i < Fragment::size; ++i) {
    const bool exists = is_whole || Fragment::col(rank, i) < Fragment::cols;
    const Value x = exists ? convert<Value>(rmem[i]) : Operation::template identity<Value>();
    Value& value = values[Fragment::RowOfRegister::slot(i)];
    value = Across::slot(i) == 0 ? x : Operation::combine(value, x);
  }
}

/// Slots of all warps that share a row, combined.
template <typename Operation, typename Fragment, typename Value, int kSlots>
DEVMATH_DEVICE void combine_warps(int rank, Value (&values)[kSlots], Value* smem, bool smem_in_use) {
  using Sharers = SharersOf<Fragment>;
  if (smem_in_use) wait_for_block();
  DEVMATH_UNROLL
  for (int slot = 0; slot < kSlots; ++slot) {
    const int row = Fragment::row(rank, Sharers::register_of(slot));
    if (Sharers::writes(rank)) smem[Sharers::warp(rank) * Sharers::rows_reached + row] = values[slot];
  }
  wait_for_block();
  DEVMATH_UNROLL
  for (int slot = 0; slot < kSlots; ++slot) {
    const int row = Fragment::row(rank, Sharers::register_of(slot));
    values[slot] = smem[row];
    DEVMATH_UNROLL
    for (int warp = 1; warp < Sharers::warps; ++warp) {
      values[slot] = Operation::combine(values[slot], smem[warp * Sharers::rows_reached + row]);
    }
  }
}

/// Row vector `vector` = Operation over the rows of the fragment. `smem` holds warps * rows_reached values where
/// several warps share a row; else it is not looked at.
template <typename Operation, typename Fragment, typename Element, typename Value>
DEVMATH_DEVICE void reduce_rows(const void* rmem, void* vector, void* smem, int smem_in_use) {
  using Sharers = SharersOf<Fragment>;
  constexpr int slots = Fragment::RowOfRegister::count;
  const int rank = block_rank();
  Value values[slots];
  reduce_registers<Operation, Fragment>(rank, (const Element*)rmem, values);
  DEVMATH_UNROLL
  for (int bit = 1; bit < 32; bit *= 2) {
    if (!(Sharers::lane_bits & bit)) continue;
    DEVMATH_UNROLL
    for (int slot = 0; slot < slots; ++slot) {
      values[slot] = Operation::combine(values[slot], value_across(values[slot], bit));
    }
  }
  if constexpr (Sharers::warps > 1) combine_warps<Operation, Fragment>(rank, values, (Value*)smem, smem_in_use);
  DEVMATH_UNROLL
  for (int slot = 0; slot < slots; ++slot) ((Value*)vector)[slot] = values[slot];
}

/// `to` = `from`, row vectors of two fragments that share out rows in different ways. `smem` holds a value a row.
template <typename From, typename To, typename Value>
DEVMATH_DEVICE void redistribute_rows(const void* from, void* to, void* smem, int smem_in_use) {
  const int rank = block_rank();
  if (smem_in_use) wait_for_block();
  DEVMATH_UNROLL
  for (int slot = 0; slot < From::RowOfRegister::count; ++slot) {
    const int row = From::row(rank, SharersOf<From>::register_of(slot));
    if (From::ColOfThread::slot(rank) == 0 && row < From::rows) ((Value*)smem)[row] = ((const Value*)from)[slot];
  }
  wait_for_block();
  DEVMATH_UNROLL
  for (int slot = 0; slot < To::RowOfRegister::count; ++slot) {
    const int row = To::row(rank, SharersOf<To>::register_of(slot));
    ((Value*)to)[slot] = row < To::rows ? ((const Value*)smem)[row] : Value{};
  }
}

/// to[i] = from[i], converted.
template <int kSize, typename From, typename To>
DEVMATH_DEVICE void convert_registers(const void* from, void* to) {
  DEVMATH_UNROLL
  for (int i = 0; i < kSize; ++i) ((To*)to)[i] = convert<To>(((const From*)from)[i]);
}

}  // namespace devmath
