// mma.sync in double and in tf32, emulated on the lanes of gemm_block.hpp.
#pragma once

namespace devmath {

/// What the lanes of a warp hold when they multiply 16 x kK by kK x 8.
template <typename Register, int kK>
struct MmaOperands {
  Register a[Warp::kLanes][kK / 2], b[Warp::kLanes][kK / 4];

  /// Every lane's registers are there when this returns.
  void show(const Register* rmem_a, const Register* rmem_b) {
    Warp& warp = *Warp::current;
    for (int q = 0; q < kK / 2; ++q) a[warp.lane()][q] = rmem_a[q];
    for (int q = 0; q < kK / 4; ++q) b[warp.lane()][q] = rmem_b[q];
    warp.wait();
  }
  Register of_a(int row, int k) const { return a[row % 8 * 4 + k % 4][row / 8 + k / 4 * 2]; }
  Register of_b(int k, int col) const { return b[col * 4 + k % 4][k / 4]; }
};

template <int kK>
void mma_f64(double* d, const double* a, const double* b) {
  static MmaOperands<double, kK> operands;
  Warp& warp = *Warp::current;
  operands.show(a, b);
  for (int q = 0; q < 4; ++q) {
    const int row = warp.lane() / 4 + 8 * (q / 2), col = warp.lane() % 4 * 2 + q % 2;
    for (int k = 0; k < kK; ++k) d[q] = std::fma(operands.of_a(row, k), operands.of_b(k, col), d[q]);
  }
  warp.wait();
}

void mma_m16n8k8(double* d, const double* a, const double* b) { mma_f64<8>(d, a, b); }
void mma_m16n8k16(double* d, const double* a, const double* b) { mma_f64<16>(d, a, b); }

/// The number that a tf32 register holds; 13 bits are not part of it.
inline double tf32_value(u32 bits) { return bits_float(bits & 0xffffe000u); }

/// Tensor cores cut what an accumulator has no room for: x as a float, rounded toward zero.
inline float cut_to_float(double x) {
  const float nearest = (float)x;
  return std::isfinite(nearest) && std::fabs((double)nearest) > std::fabs(x) ? std::nextafter(nearest, 0.0f) : nearest;
}

void mma_m16n8k8_tf32(float* d, const u32* a, const u32* b) {
  static MmaOperands<u32, 8> operands;
  Warp& warp = *Warp::current;
  operands.show(a, b);
  for (int q = 0; q < 4; ++q) {
    const int row = warp.lane() / 4 + 8 * (q / 2), col = warp.lane() % 4 * 2 + q % 2;
    double sum = d[q];
    for (int k = 0; k < 8; ++k) sum += tf32_value(operands.of_a(row, k)) * tf32_value(operands.of_b(k, col));
    d[q] = cut_to_float(sum);
  }
  warp.wait();
}

}  // namespace devmath
