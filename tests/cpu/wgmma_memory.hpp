// What a matrix descriptor of wgmma says, as the hardware reads it.
#pragma once

#include <cstdlib>

#include "devmath/wgmma.cuh"

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

  template <typename Element>
  Element element(int outer, int k) const {
    const int line = is_mn_major_ ? k : outer, position_bytes = sizeof(Element) * (is_mn_major_ ? outer : k);
    u64 address = start_ + line / 8 * stride_bytes_ + line % 8 * line_bytes_;
    if (is_mn_major_) {
      address += position_bytes / line_bytes_ * leading_bytes_ + position_bytes % line_bytes_;
    } else {
      address += position_bytes;
    }
    // Chunk bits of the address, as many as the line has, are XORed with the three bits from 128 bytes on.
    const u64 swizzled = address ^ ((address >> 7 & (line_bytes_ / 16 - 1)) << 4);
    return *(const Element*)swizzled;
  }

 private:
  bool is_mn_major_;
  u64 start_, leading_bytes_, stride_bytes_, line_bytes_;
};

}  // namespace devmath
