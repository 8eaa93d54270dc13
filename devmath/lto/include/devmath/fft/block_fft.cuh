// Discrete Fourier transforms of one block's rows, in registers, with shared memory between the stages:
//
//   forward  y[k] = sum_j x[j] exp(-2 pi i j k / n)      inverse  x[j] = sum_k y[k] exp(+2 pi i j k / n)
//
// Neither is scaled: the inverse of the forward transform is n times the input. Stockham: thread t of a transform holds
// elements t + i T (i = 0 .. elements_per_thread-1, T = n / elements_per_thread) before and after, in natural order.
//
// Plan says how (written as text by fft_source.py):
//   Real, kN, kElementsPerThread, kStages, kFftsPerBlock
//   radix(stage)      kStages of them, with product kN; each divides kElementsPerThread
//   kExchange, pad(stage), kFftStride     layout of the shared-memory buffer, elements between two transforms in it
//   twiddles()        for stage 1, 2, ...: log2(R) rows of L values, row l being exp(-2 pi i q / (L 2^(l+1))),
//                     q = 0 .. L-1, where L is the product of the radices before the stage and R the stage's
// Every thread of the block must call.
#pragma once

#include "butterfly.cuh"
#include "exchange.cuh"
#include "global_access.cuh"

/// Linkage of a twiddle table: one copy for all units of a kernel that use it.
#if DEVMATH_ON_GPU
#define DEVMATH_FFT_TABLE __device__ inline const
#else
#define DEVMATH_FFT_TABLE inline const
#endif

namespace devmath::fft {

/// Complex values in the twiddle table before the rows of `stage`.
template <typename Plan>
DEVMATH_CONSTEXPR int twiddle_offset(int stage) {
  if (stage <= 1) return 0;
  return twiddle_offset<Plan>(stage - 1) + done_length<Plan>(stage - 1) * log2(Plan::radix(stage - 1));
}

/// The butterflies of one stage. Butterfly b works on registers b + r E/R and is number j = t + b T of the transform;
/// its twiddle is w = exp(-2 pi i q / (L R)), q = j % L.
template <typename Plan, int kStage>
DEVMATH_DEVICE void compute_stage(Complex<typename Plan::Real>* rmem) {
  using Value = Complex<typename Plan::Real>;
  constexpr int kRadix = Plan::radix(kStage), kLevels = log2(kRadix), kLength = done_length<Plan>(kStage);
  constexpr int kThreads = kThreadsPerFft<Plan>, kButterflies = Plan::kElementsPerThread / kRadix;
  constexpr bool kTwiddled = kStage > 0, kOneTwiddle = kThreads % kLength == 0;
  static_assert(Plan::kElementsPerThread % kRadix == 0, "compute_stage: the radix must divide elements_per_thread");

  const u32 t = thread_of_transform<Plan>();
  Value level_twiddles[kLevels] = {};
  DEVMATH_UNROLL
  for (int b = 0; b < kButterflies; ++b) {
    if constexpr (kTwiddled) {
      if (b == 0 || !kOneTwiddle) {
        const u32 q = (t + b * kThreads) % kLength;
        const Value* table = Plan::twiddles() + twiddle_offset<Plan>(kStage) + q;
        DEVMATH_UNROLL
        for (int level = 0; level < kLevels; ++level) level_twiddles[level] = load_twiddle(table + level * kLength);
      }
    }
    Value outputs[kRadix];
    butterfly<kRadix, kButterflies, kTwiddled>(rmem + b, outputs, level_twiddles);
    DEVMATH_UNROLL
    for (int r = 0; r < kRadix; ++r) rmem[b + r * kButterflies] = outputs[r];
  }
}

/// Stages kStage, kStage + 1, ... and the exchanges before them.
template <typename Plan, int kStage>
DEVMATH_DEVICE void finish_stages(Complex<typename Plan::Real>* rmem, void* smem_exchange, bool exchange_in_use) {
  if constexpr (kStage < Plan::kStages) {
    if (exchange_in_use) synchronize<Plan>();
    exchange<Plan, kStage - 1>(rmem, smem_exchange);
    compute_stage<Plan, kStage>(rmem);
    finish_stages<Plan, kStage + 1>(rmem, smem_exchange, true);
  }
}

/// Transforms this thread's elements_per_thread complex values in place.
///
/// smem_exchange    the block's exchange buffer, or anything where the plan has one stage.
/// exchange_in_use  whether threads may still be reading that buffer, as they are after another transform.
template <typename Plan, bool kInverse>
DEVMATH_DEVICE void transform_registers(void* rmem, void* smem_exchange, int exchange_in_use) {
  using Real = typename Plan::Real;

  // The inverse is the forward transform with real and imaginary parts swapped, before and after.
  constexpr int kRe = kInverse ? 1 : 0, kIm = 1 - kRe;
  Real* parts = (Real*)rmem;
  Complex<Real> values[Plan::kElementsPerThread];
  DEVMATH_UNROLL
  for (int i = 0; i < Plan::kElementsPerThread; ++i) values[i] = {parts[2 * i + kRe], parts[2 * i + kIm]};
  compute_stage<Plan, 0>(values);
  finish_stages<Plan, 1>(values, smem_exchange, exchange_in_use != 0);
  DEVMATH_UNROLL
  for (int i = 0; i < Plan::kElementsPerThread; ++i) {
    parts[2 * i + kRe] = values[i].re;
    parts[2 * i + kIm] = values[i].im;
  }
}

/// Transforms ffts_per_block rows of n complex values in shared memory, `ld` values apart, in place. Each thread reads
/// and writes its own elements only and no barrier stands around that: the caller synchronises before and after.
template <typename Plan, bool kInverse>
DEVMATH_DEVICE void transform_tile(void* smem_tile, int ld, void* smem_exchange, int exchange_in_use) {
  using Value = Complex<typename Plan::Real>;

  Value* smem = (Value*)smem_tile + transform_of_block<Plan>() * ld + thread_of_transform<Plan>();
  Value values[Plan::kElementsPerThread];
  DEVMATH_UNROLL
  for (int i = 0; i < Plan::kElementsPerThread; ++i) values[i] = smem[i * kThreadsPerFft<Plan>];
  transform_registers<Plan, kInverse>(values, smem_exchange, exchange_in_use);
  DEVMATH_UNROLL
  for (int i = 0; i < Plan::kElementsPerThread; ++i) smem[i * kThreadsPerFft<Plan>] = values[i];
}

}  // namespace devmath::fft
