// A ring of kStages stages that a producer fills and consumers empty, each at its own pace.
//
// A stage has two barriers. The producer waits for `empty` and fills; the bytes that land complete `full`. Consumers
// wait for `full`, read, and arrive at `empty`. A barrier's phase flips each time it completes; whoever waits names the
// parity of the phase that must be over. At round r of the ring (r = 0, 1, ...) consumers wait for parity r % 2 of
// `full`, and the producer for the other one of `empty`: in round 0 that is the phase before the first, which counts as
// over, so that it fills the ring at once.
//
// A stage holds a tile of A and one of B, each from a multiple of 1024 bytes on, where every swizzle repeats.
#pragma once

#include "../platform.cuh"

namespace devmath {

/// A place in the ring, and the parity of the round.
template <int kStages>
struct RingPosition {
  u32 stage, parity;

  DEVMATH_DEVICE void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

/// The tiles of a stage, A first. Stages follow each other.
template <int kABytes, int kBytes>
struct StageMemory {
  static constexpr int a_bytes = kABytes, bytes = kBytes;
  static_assert(kABytes % 1024 == 0 && kBytes % 1024 == 0, "StageMemory: every swizzle must start anew");
};

}  // namespace devmath
