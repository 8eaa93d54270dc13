// Block GEMM on tensor cores by warpgroup-wide wgmma (sm_90a): float16, bfloat16 and float8 operands with float sums,
// int8 and uint8 ones with int sums.
//
// Sums of float8 are kept to about 14 bits: an instruction, of 32 values of k, adds up to 2^-13 of the largest number
// that it sums, the running sum among them. Powers of two and integers below 2^13 stay exact.
#pragma once

#include "mma_sync.cuh"
#include "wgmma_tile.cuh"

namespace devmath {

template <int kItemBytes>
struct PlainMmaSync {
  template <typename Fragment, int kColBlocks>
  using Block = MmaSyncBlock<Fragment, 1, kColBlocks, kItemBytes>;
};

template <typename Fragment, int kN, int kItemBytes>
using WgmmaBlock = WgmmaTileBlock<Fragment, kN, PlainMmaSync<kItemBytes>::template Block>;

}  // namespace devmath
