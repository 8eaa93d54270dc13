// How the values of a transform change hands between two stages, through shared memory (Stockham's autosort order).
//
// Before stage s the n values are n / L interleaved DFTs of length L = R_0 R_1 ... R_(s-1). Thread t of T computes the
// butterflies j = t + b T; output r of butterfly j belongs at
//
//   (j / L) L R + j % L + r L     and each thread then reads     t + i T,   i = 0 .. elements_per_thread-1.
//
// Padding inserts `words` elements after every `period`, so that the lanes of a warp hit different banks. All of
// n, T, L, R and the periods are powers of two: the terms in t, b and r occupy different bits of an offset, so padding
// acts on each alone. One address is computed a thread; the rest are immediate offsets.
#pragma once

#include "../complex.cuh"
#include "threads.cuh"

namespace devmath::fft {

/// kComplex: whole complex values. kPlanar: real parts, then all imaginary parts. kSplit: real parts, and once those
/// are read, imaginary parts through the same buffer: half the memory, twice the barriers.
enum class Exchange { kNone, kComplex, kPlanar, kSplit };

struct Pad {
  int period, words;
};

DEVMATH_CONSTEXPR u32 padded(u32 offset, Pad pad) {
  return pad.words == 0 ? offset : offset + offset / pad.period * pad.words;
}

/// Length of the DFTs that are done before `stage`: the product of the radices so far.
template <typename Plan>
DEVMATH_CONSTEXPR int done_length(int stage) {
  return stage == 0 ? 1 : done_length<Plan>(stage - 1) * Plan::radix(stage - 1);
}

// What one exchange moves of a value.
template <typename Real>
struct WholeValue {
  using Stored = Complex<Real>;
  DEVMATH_DEVICE static Stored get(const Complex<Real>& value) { return value; }
  DEVMATH_DEVICE static void set(Complex<Real>& value, Stored stored) { value = stored; }
};
template <typename Real>
struct RealPart {
  using Stored = Real;
  DEVMATH_DEVICE static Stored get(const Complex<Real>& value) { return value.re; }
  DEVMATH_DEVICE static void set(Complex<Real>& value, Stored stored) { value.re = stored; }
};
template <typename Real>
struct ImaginaryPart {
  using Stored = Real;
  DEVMATH_DEVICE static Stored get(const Complex<Real>& value) { return value.im; }
  DEVMATH_DEVICE static void set(Complex<Real>& value, Stored stored) { value.im = stored; }
};

/// Stores what stage kStage left in the registers: output r of butterfly b is in register b + r E/R.
template <typename Plan, int kStage, typename Part>
DEVMATH_DEVICE void write_outputs(const Complex<typename Plan::Real>* rmem, typename Part::Stored* smem) {
  constexpr u32 kLength = done_length<Plan>(kStage), kRadix = Plan::radix(kStage), kThreads = kThreadsPerFft<Plan>;
  constexpr u32 kButterflies = Plan::kElementsPerThread / kRadix;
  constexpr Pad kPad = Plan::pad(kStage);

  const u32 t = thread_of_transform<Plan>();
  smem += padded(t / kLength * (kLength * kRadix) + t % kLength, kPad);
  DEVMATH_UNROLL
  for (u32 b = 0; b < kButterflies; ++b) {
    const u32 j = b * kThreads;
    const u32 first = padded(j / kLength * (kLength * kRadix) + j % kLength, kPad);
    DEVMATH_UNROLL
    for (u32 r = 0; r < kRadix; ++r) smem[first + padded(r * kLength, kPad)] = Part::get(rmem[b + r * kButterflies]);
  }
}

/// Loads the inputs of stage kStage + 1, which are at stride T as they are in a loaded row.
template <typename Plan, int kStage, typename Part>
DEVMATH_DEVICE void read_inputs(Complex<typename Plan::Real>* rmem, const typename Part::Stored* smem) {
  constexpr Pad kPad = Plan::pad(kStage);

  smem += padded(thread_of_transform<Plan>(), kPad);
  DEVMATH_UNROLL
  for (u32 i = 0; i < Plan::kElementsPerThread; ++i) Part::set(rmem[i], smem[padded(i * kThreadsPerFft<Plan>, kPad)]);
}

/// The whole exchange between stages kStage and kStage + 1. The buffer must not be read by others on entry, and may be
/// on return: synchronise before it is written again.
template <typename Plan, int kStage>
DEVMATH_DEVICE void exchange(Complex<typename Plan::Real>* rmem, void* smem_exchange) {
  using Real = typename Plan::Real;
  using Whole = WholeValue<Real>;
  using Re = RealPart<Real>;
  using Im = ImaginaryPart<Real>;

  const int offset = transform_of_block<Plan>() * Plan::kFftStride;
  if constexpr (Plan::kExchange == Exchange::kComplex) {
    Complex<Real>* smem = (Complex<Real>*)smem_exchange + offset;
    write_outputs<Plan, kStage, Whole>(rmem, smem);
    synchronize<Plan>();
    read_inputs<Plan, kStage, Whole>(rmem, smem);
  } else if constexpr (Plan::kExchange == Exchange::kPlanar) {
    Real *smem_re = (Real*)smem_exchange + offset, *smem_im = smem_re + Plan::kFftsPerBlock * Plan::kFftStride;
    write_outputs<Plan, kStage, Re>(rmem, smem_re);
    write_outputs<Plan, kStage, Im>(rmem, smem_im);
    synchronize<Plan>();
    read_inputs<Plan, kStage, Re>(rmem, smem_re);
    read_inputs<Plan, kStage, Im>(rmem, smem_im);
  } else {
    Real* smem = (Real*)smem_exchange + offset;
    write_outputs<Plan, kStage, Re>(rmem, smem);
    synchronize<Plan>();
    read_inputs<Plan, kStage, Re>(rmem, smem);
    synchronize<Plan>();
    write_outputs<Plan, kStage, Im>(rmem, smem);
    synchronize<Plan>();
    read_inputs<Plan, kStage, Im>(rmem, smem);
  }
}

}  // namespace devmath::fft
