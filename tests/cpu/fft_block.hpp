// Runs the kernels of a transform's tests on a CPU.
#pragma once

#include <limits>

#include "block_fibers.hpp"
#include "devmath/fft/block_fft.cuh"
#include "devmath/fft/memory.cuh"

namespace devmath {

/// A matrix in memory, strides in bytes.
struct Matrix {
  void* data;
  i64 rows, columns, row_stride_bytes, column_stride_bytes;
};

/// What a test asks for: the rows from first_row on, by as many blocks as x has rows.
struct Request {
  Matrix x, y;
  i64 first_row;
  int descending;
  void* smem;
  int ld;
};

template <typename Plan, bool kForward, bool kInverse>
void registers_kernel(void* argument) {
  const Request& request = *(const Request*)argument;
  const Matrix &x = request.x, &y = request.y;
  typename Plan::Real rmem[2 * Plan::kElementsPerThread];

  const i64 row = request.first_row + fft::transform_of_block<Plan>();
  fft::load_registers<Plan>(rmem, x.data, row, x.rows, x.columns, x.row_stride_bytes, x.column_stride_bytes);
  if (kForward) fft::transform_registers<Plan, false>(rmem, request.smem, 0);
  if (kInverse) fft::transform_registers<Plan, true>(rmem, request.smem, kForward);
  fft::store_registers<Plan>(rmem, y.data, row, y.rows, y.columns, y.row_stride_bytes, y.column_stride_bytes);
}

template <typename Plan>
void tile_kernel(void* argument) {
  const Request& request = *(const Request*)argument;
  fft::transform_tile<Plan, false>(request.y.data, request.ld, request.smem, 0);
}

/// kind: 0 forward, 1 inverse, 2 both one after the other, 3 forward on the tile at y.
template <typename Plan>
void run_request(Request request, int kind) {
  constexpr void (*kKernels[])(void*) = {registers_kernel<Plan, true, false>, registers_kernel<Plan, false, true>,
                                         registers_kernel<Plan, true, true>, tile_kernel<Plan>};
  using Real = typename Plan::Real;
  const int block_elements = Plan::kFftsPerBlock * Plan::kFftStride;

  for (; request.first_row < request.x.rows; request.first_row += Plan::kFftsPerBlock) {
    std::vector<Real> smem(2 * block_elements, std::numeric_limits<Real>::quiet_NaN());
    request.smem = smem.data();
    Block(Plan::kFftsPerBlock * fft::kThreadsPerFft<Plan>, request.descending, kKernels[kind], &request);
  }
}

}  // namespace devmath
