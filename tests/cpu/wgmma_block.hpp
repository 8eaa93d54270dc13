// wgmma on a CPU: each thread of a warpgroup computes its own accumulators from what the descriptors say.
//
// A unit includes this in the place of its own header.
#pragma once

#include <cstring>
#include <initializer_list>

#include "gemm_block.hpp"
#include "wgmma_memory.hpp"

#include "devmath/gemm/wgmma.cuh"
#include "devmath/gemm/wgmma_tf32.cuh"
#include "devmath/gemm/wgmma_tf32x3.cuh"

namespace devmath {

/// Aborts where the threads of a warpgroup do not name the same operands in the same order.
inline void check_uniform(std::initializer_list<u64> numbers) {
  static std::vector<u64> issued[1024 / 128];
  static std::size_t next[1024];
  std::vector<u64>& of_group = issued[block_rank() / 128];
  for (u64 number : numbers) {
    std::size_t& position = next[block_rank()];
    if (position == of_group.size()) of_group.push_back(number);
    if (of_group[position++] != number) std::abort();
  }
}

/// What the instruction multiplies.
template <typename Element>
double wgmma_factor(Element x) {
  if constexpr (IsSame<Element, float>::value) {
    return tf32_value(float_bits(x));
  } else if constexpr (IsSame<Element, i8>::value || IsSame<Element, u8>::value) {
    return x;
  } else {
    return widen(x);
  }
}

/// D += A B for this thread; `of_a` is an element of A by (row, k).
template <int kN, typename ElementA, typename ElementB, typename Sum, typename OfA>
void wgmma_multiply(Sum* sums, OfA of_a, const MatrixInMemory& b, bool adds) {
  static_assert(kN % 8 == 0 && 8 <= kN && kN <= 256);
  static_assert(!IsSame<Sum, int>::value || kN <= 32 || kN % 16 == 0);
  const int thread = block_rank() % 128;
  for (int i = 0; i < kN / 2; ++i) {
    const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8, col = i / 4 * 8 + thread % 4 * 2 + i % 2;
    double sum = adds ? sums[i] : Sum(0);
    for (int k = 0; k < 32 / (int)sizeof(ElementA); ++k) {
      sum += wgmma_factor(of_a(row, k)) * wgmma_factor(b.template element<ElementB>(col, k));
    }
    if constexpr (IsSame<Sum, int>::value) {
      sums[i] = (int)(u32)(i64)sum;  // wraps around
    } else {
      sums[i] = cut_to_float(sum);
    }
  }
}

template <int kN, typename ElementA, typename ElementB>
template <int kAIsMnMajor, int kBIsMnMajor, typename Sum>
void Wgmma<kN, ElementA, ElementB>::multiply(Sum* sums, MatrixDescriptor a, MatrixDescriptor b, bool adds) {
  check_uniform({a.bits(), a.start, b.bits(), b.start});
  const MatrixInMemory matrix_a(a, kAIsMnMajor);
  const auto of_a = [&](int row, int k) { return matrix_a.element<ElementA>(row, k); };
  wgmma_multiply<kN, ElementA, ElementB>(sums, of_a, MatrixInMemory(b, kBIsMnMajor), adds);
}

/// Each lane holds its part of 16 rows, 32 bytes of k of each: four bytes from 4 (lane % 4) on, and 16 bytes further.
template <int kN, typename ElementA, typename ElementB>
template <int kBIsMnMajor, typename Sum>
void Wgmma<kN, ElementA, ElementB>::multiply_registers(Sum* sums, const u32* a, MatrixDescriptor b, bool adds) {
  check_uniform({b.bits(), b.start});
  Warp& warp = *Warp::current;
  warp.show({nullptr, {a[0], a[1], a[2], a[3]}, {}});
  const auto of_a = [&](int row, int k) {
    const int byte = k * sizeof(ElementA);
    const u32 word = warp.of(row % 8 * 4 + byte % 16 / 4).a[row % 16 / 8 + byte / 16 * 2];
    ElementA element;
    std::memcpy(&element, (const char*)&word + byte % 4, sizeof(element));
    return element;
  };
  wgmma_multiply<kN, ElementA, ElementB>(sums, of_a, MatrixInMemory(b, kBIsMnMajor), adds);
  warp.wait();
}

/// A from registers, as the instruction takes it from whoever has it there; here by the loads of mma.sync.
template <typename FragmentOfPasses, int kN>
struct WgmmaRegistersBlock : WgmmaPass<FragmentOfPasses, kN, PlainMmaSync<2>::Block> {
  using Pass = WgmmaPass<FragmentOfPasses, kN, PlainMmaSync<2>::Block>;

  template <typename Sum, typename OperandA, typename OperandB>
  static void accumulate(Sum* sums, int first, int rank, const OperandA& a, const OperandB& b) {
    using TileB = WgmmaOperand<OperandB>;
    const int row = Pass::first_row(a, first, rank) + rank % 128 / 32 * 16;
    const MatrixDescriptor start_b = TileB::first(b, Pass::first_col(b, first, rank));
    for (int k = 0; k < OperandA::k_extent; k += TileB::k_step) {
      u32 rmem[4];
      MmaFragment<OperandA, true, 4>::template load<TileB::k_step>(rmem, a, row, 0, k, rank % 32);
      Wgmma<kN, typename OperandA::Element, typename OperandB::Element>::template multiply_registers<
          TileB::is_mn_major>(sums, rmem, start_b.advanced(TileB::distance_bytes(k)), true);
    }
  }
};

bool holds_in_warp(bool condition) {
  Warp& warp = *Warp::current;
  warp.show({nullptr, {condition}, {}});
  bool holds = false;
  for (int lane = 0; lane < Warp::kLanes; ++lane) holds |= warp.of(lane).a[0] != 0;
  warp.wait();
  return holds;
}

/// Of one barrier in a run.
bool publish_to_wgmma(bool condition) {
  static bool holds = false;
  holds |= condition;
  Warp::current->wait_for_block();
  return holds;
}

}  // namespace devmath
