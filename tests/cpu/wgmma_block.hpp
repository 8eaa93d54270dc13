// wgmma on a CPU: each thread of a warpgroup computes its own accumulators from what the descriptors say.
//
// A unit includes this in the place of gemm/wgmma.cuh.
#pragma once

#include "gemm_block.hpp"

#include "devmath/gemm/wgmma.cuh"

namespace devmath {

/// A descriptor taken apart as the hardware does, from its 64 bits; `start` only adds what 14 bits leave out.
class MatrixInMemory {
 public:
  MatrixInMemory(MatrixDescriptor descriptor, bool is_mn_major) : is_mn_major_(is_mn_major) {
    const u64 bits = descriptor.bits();
    if ((bits & 0x3fff) != (descriptor.start & 0x3fff)) std::abort();
    if (bits & 0x3fffc000c000c000) std::abort();  // fields that must be 0
    start_ = descriptor.start * 16;
    leading_bytes_ = (bits >> 16 & 0x3fff) * 16;
    stride_bytes_ = (bits >> 32 & 0x3fff) * 16;
    const int layout = bits >> 62;
    if (layout == 0) std::abort();
    line_bytes_ = 256 >> layout;  // 1, 2, 3: 128, 64, 32 bytes
    const u64 atom_offset = start_ % (8 * line_bytes_);
    if (is_mn_major ? atom_offset != 0 : atom_offset >= line_bytes_) std::abort();
  }

  u16 element(int outer, int k) const {
    const int line = is_mn_major_ ? k : outer, position_bytes = 2 * (is_mn_major_ ? outer : k);
    u64 address = start_ + line / 8 * stride_bytes_ + line % 8 * line_bytes_;
    if (is_mn_major_) {
      address += position_bytes / line_bytes_ * leading_bytes_ + position_bytes % line_bytes_;
    } else {
      address += position_bytes;
    }
    // Chunk bits of the address, as many as the line has, are XORed with the three bits from 128 bytes on.
    const u64 swizzled = address ^ ((address >> 7 & (line_bytes_ / 16 - 1)) << 4);
    return *(const u16*)swizzled;
  }

 private:
  bool is_mn_major_;
  u64 start_, leading_bytes_, stride_bytes_, line_bytes_;
};

/// Aborts where the threads of a warpgroup do not name the same operands in the same order.
inline void check_uniform(MatrixDescriptor a, MatrixDescriptor b) {
  static std::vector<u64> issued;
  static std::size_t next;
  static int rank;
  if (block_rank() != rank) next = 0;
  rank = block_rank();
  if (rank % 128 == 0 && next == 0) issued.clear();
  for (u64 number : {a.bits(), a.start, b.bits(), b.start}) {
    if (rank % 128 == 0) issued.push_back(number);
    if (next == issued.size() || issued[next++] != number) std::abort();
  }
}

template <int kN>
template <int kAIsMnMajor, int kBIsMnMajor, typename Element>
void Wgmma<kN>::multiply(float* sums, MatrixDescriptor a, MatrixDescriptor b, Element) {
  static_assert(kN % 8 == 0 && 8 <= kN && kN <= 256);
  check_uniform(a, b);
  const MatrixInMemory matrix_a(a, kAIsMnMajor), matrix_b(b, kBIsMnMajor);
  const int thread = block_rank() % 128;
  for (int i = 0; i < kN / 2; ++i) {
    const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8, col = i / 4 * 8 + thread % 4 * 2 + i % 2;
    double sum = sums[i];
    for (int k = 0; k < 16; ++k) {
      sum += (double)widen(Element{matrix_a.element(row, k)}) * widen(Element{matrix_b.element(col, k)});
    }
    sums[i] = (float)sum;
  }
}

}  // namespace devmath
