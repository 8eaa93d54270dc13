// What the lanes of a warp tell each other, by shuffles and votes. Every lane of the warp makes each of these calls.
//
// Where there is no GPU these two are declarations only: whoever emulates a warp defines them.
#pragma once

#include "platform.cuh"

#if !DEVMATH_ON_GPU
#include <cstring>
#endif

namespace devmath {

#if DEVMATH_ON_GPU
/// The word of the lane whose number differs in `lane_bits`.
DEVMATH_DEVICE u32 shuffle_xor(u32 word, int lane_bits) { return __shfl_xor_sync(0xffffffffu, word, lane_bits); }

/// True where the condition is true in every lane of the warp.
DEVMATH_DEVICE bool all_lanes(bool condition) { return __all_sync(0xffffffffu, condition); }
#else
u32 shuffle_xor(u32 word, int lane_bits);
bool all_lanes(bool condition);
#endif

/// Any number of bytes as the words that a shuffle moves.
template <typename T>
struct Words {
  static constexpr int count = divide_up(sizeof(T), 4);
  u32 words[count];

  DEVMATH_DEVICE Words() {}
  DEVMATH_DEVICE explicit Words(const T& x) : words{} { memcpy(words, &x, sizeof(T)); }
  DEVMATH_DEVICE T value() const {
    T x;
    memcpy(&x, words, sizeof(T));
    return x;
  }
};

/// The same value of the lane whose number differs in `lane_bits`.
template <typename T>
DEVMATH_DEVICE T value_across(const T& x, int lane_bits) {
  Words<T> moved(x);
  DEVMATH_UNROLL
  for (u32& word : moved.words) word = shuffle_xor(word, lane_bits);
  return moved.value();
}

/// Transposes what kLanes lanes hold, lanes `kDistance` apart: pieces[q] of the lane at place p becomes what pieces[p]
/// of the lane at place q was. Lanes exchange halves, then quarters, and so on.
template <int kLanes, int kDistance, typename T>
DEVMATH_DEVICE void transpose_lanes(Words<T>* pieces, int place) {
  DEVMATH_UNROLL
  for (int bit = 1; bit < kLanes; bit *= 2) {
    const bool is_upper = place & bit;
    DEVMATH_UNROLL
    for (int p = 0; p < kLanes; ++p) {
      if (p & bit) continue;
      DEVMATH_UNROLL
      for (int w = 0; w < Words<T>::count; ++w) {
        u32 &low = pieces[p].words[w], &high = pieces[p | bit].words[w];
        const u32 received = shuffle_xor(is_upper ? low : high, bit * kDistance);
        low = is_upper ? received : low;
        high = is_upper ? high : received;
      }
    }
  }
}

}  // namespace devmath
