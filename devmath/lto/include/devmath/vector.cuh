// Neighbours in memory that move together.
#pragma once

#include "platform.cuh"

namespace devmath {

/// N elements that move in one access of N * sizeof(T) bytes, at most 16.
template <typename T, int N>
struct alignas(N * sizeof(T)) Vector {
  static_assert(N * sizeof(T) <= 16, "Vector: one access moves at most 16 bytes");
  T values[N];
};

}  // namespace devmath
