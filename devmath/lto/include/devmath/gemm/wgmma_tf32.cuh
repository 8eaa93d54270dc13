// Block GEMM of float operands, read as tf32, on tensor cores by warpgroup-wide wgmma (sm_90a).
//
// Tensor cores do not look at the low 13 bits of a float, here as with mma.sync (mma_tf32.cuh).
#pragma once

#include "mma_tf32.cuh"
#include "wgmma_tile.cuh"

namespace devmath {

template <typename Fragment, int kColBlocks>
using PlainMmaTf32Block = MmaTf32Block<Fragment, 1, kColBlocks, 1, 16, 1>;

template <typename Fragment, int kN>
using WgmmaTf32Block = WgmmaTileBlock<Fragment, kN, PlainMmaTf32Block>;

}  // namespace devmath
