// Block GEMM on tensor cores by warpgroup-wide wgmma (sm_90a): float16 or bfloat16 operands, float sums.
#pragma once

#include "mma_sync.cuh"
#include "wgmma_tile.cuh"

namespace devmath {

template <typename Fragment, int kColBlocks>
using PlainMmaSyncBlock = MmaSyncBlock<Fragment, 1, kColBlocks, 2>;

template <typename Fragment, int kN>
using WgmmaBlock = WgmmaTileBlock<Fragment, kN, PlainMmaSyncBlock>;

}  // namespace devmath
