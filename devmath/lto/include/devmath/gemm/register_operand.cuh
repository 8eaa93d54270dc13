// An A operand in registers: the accumulator of an earlier product, or what it was converted to.
//
// The blocks of 16 x 8 accumulators that mma.sync leaves in a warp are just what it takes as A, where each warp holds
// whole rows of A: those of its own rows of C. Which fragments are of that kind, gemm_register_operand.py says.
#pragma once

#include "../fragment.cuh"
#include "../scalar.cuh"

namespace devmath {

/// `rmem` is this thread's share of A, (m, k); as a Fragment says.
template <typename FragmentOfA, typename ElementOfA>
struct RegisterOperand {
  using Fragment = FragmentOfA;
  using Element = ElementOfA;
  static constexpr int k_extent = Fragment::cols;

  const Element* rmem;

  /// The element that is (row, k) further than that of register 0; zero where it lies past k. Both are constants.
  DEVMATH_DEVICE Element at(int row, int k, int lane) const {
    using Along = typename Fragment::ColOfRegister;
    if (k > Along::maximum) return Element{};
    const Element x = rmem[Fragment::RowOfRegister::inverse(row) + Along::inverse(k)];
    return k + 6 < k_extent || k + lane % 4 * 2 < k_extent ? x : Element{};
  }

  /// Of 16-bit elements, what an instruction takes of 16 rows and 16 values of k from (row, k) on: neighbours along k
  /// in one register, q of row half q % 2 and k half q / 2.
  DEVMATH_DEVICE void pack(u32* packed, int row, int k, int lane) const {
    DEVMATH_UNROLL
    for (int q = 0; q < 4; ++q) {
      const int q_row = row + 8 * (q % 2), q_k = k + 8 * (q / 2);
      packed[q] = at(q_row, q_k, lane).bits | (u32)at(q_row, q_k + 1, lane).bits << 16;
    }
  }
};

}  // namespace devmath
