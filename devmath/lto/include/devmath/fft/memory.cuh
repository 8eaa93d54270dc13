// Rows of a matrix in global memory to and from the registers of the threads that transform them.
//
// Element i of thread t is column t + i T of row `transform`. Outside the rows x columns matrix loads give zeros and
// stores do nothing. Strides are in bytes, of any size and sign; values are aligned to their real part at least.
//
// Contiguous rows of aligned values take one access a value; others take one for each part, since a whole value may
// straddle the alignment that an access needs.
#pragma once

#include "global_access.cuh"
#include "threads.cuh"

namespace devmath::fft {

/// One row of the matrix as a transform sees it.
struct Row {
  i64 offset_bytes;   // from the matrix to the row
  int columns;        // how many of the n columns exist; none in a row that does not exist
  bool contiguous;    // aligned and without gaps
};

template <typename Plan>
DEVMATH_DEVICE Row locate_row(const void* gmem, i64 transform, i64 rows, i64 columns, i64 row_stride_bytes,
                              i64 column_stride_bytes) {
  constexpr int kValueBytes = sizeof(Complex<typename Plan::Real>);
  const bool exists = 0 <= transform && transform < rows && columns > 0;
  const i64 offset_bytes = transform * row_stride_bytes;
  return {offset_bytes, !exists ? 0 : columns < Plan::kN ? (int)columns : Plan::kN,
          column_stride_bytes == kValueBytes && ((u64)gmem + offset_bytes) % kValueBytes == 0};
}

/// kContiguous, kWhole: what is known of the row, so that the common case has neither multiplications nor predicates.
template <typename Plan, bool kContiguous, bool kWhole>
DEVMATH_DEVICE void load_row(typename Plan::Real* parts, const char* gmem_row, int columns, i64 column_stride_bytes) {
  using Real = typename Plan::Real;
  constexpr int kThreads = kThreadsPerFft<Plan>;
  const int t = thread_of_transform<Plan>();
  gmem_row += t * column_stride_bytes;
  DEVMATH_UNROLL
  for (int i = 0; i < Plan::kElementsPerThread; ++i) {
    Complex<Real> z = {0, 0};
    if (kWhole || t + i * kThreads < columns) {
      if constexpr (kContiguous) {
        z = load_once((const Complex<Real>*)gmem_row + i * kThreads);
      } else {
        const Real* gmem = (const Real*)(gmem_row + i * (kThreads * column_stride_bytes));
        z = {gmem[0], gmem[1]};
      }
    }
    parts[2 * i] = z.re;
    parts[2 * i + 1] = z.im;
  }
}

template <typename Plan, bool kContiguous, bool kWhole>
DEVMATH_DEVICE void store_row(const typename Plan::Real* parts, char* gmem_row, int columns, i64 column_stride_bytes) {
  using Real = typename Plan::Real;
  constexpr int kThreads = kThreadsPerFft<Plan>;
  const int t = thread_of_transform<Plan>();
  gmem_row += t * column_stride_bytes;
  DEVMATH_UNROLL
  for (int i = 0; i < Plan::kElementsPerThread; ++i) {
    if (kWhole || t + i * kThreads < columns) {
      if constexpr (kContiguous) {
        store_once((Complex<Real>*)gmem_row + i * kThreads, {parts[2 * i], parts[2 * i + 1]});
      } else {
        Real* gmem = (Real*)(gmem_row + i * (kThreads * column_stride_bytes));
        gmem[0] = parts[2 * i];
        gmem[1] = parts[2 * i + 1];
      }
    }
  }
}

/// rmem = this thread's elements of row `transform` of the matrix at gmem.
template <typename Plan>
DEVMATH_DEVICE void load_registers(void* rmem, const void* gmem, i64 transform, i64 rows, i64 columns,
                                   i64 row_stride_bytes, i64 column_stride_bytes) {
  const Row row = locate_row<Plan>(gmem, transform, rows, columns, row_stride_bytes, column_stride_bytes);
  auto* parts = (typename Plan::Real*)rmem;
  const char* gmem_row = (const char*)gmem + row.offset_bytes;
  if (!row.contiguous) {
    load_row<Plan, false, false>(parts, gmem_row, row.columns, column_stride_bytes);
  } else if (row.columns < Plan::kN) {
    load_row<Plan, true, false>(parts, gmem_row, row.columns, column_stride_bytes);
  } else {
    load_row<Plan, true, true>(parts, gmem_row, row.columns, column_stride_bytes);
  }
}

/// Row `transform` of the matrix at gmem = the registers of its threads.
template <typename Plan>
DEVMATH_DEVICE void store_registers(const void* rmem, void* gmem, i64 transform, i64 rows, i64 columns,
                                    i64 row_stride_bytes, i64 column_stride_bytes) {
  const Row row = locate_row<Plan>(gmem, transform, rows, columns, row_stride_bytes, column_stride_bytes);
  const auto* parts = (const typename Plan::Real*)rmem;
  char* gmem_row = (char*)gmem + row.offset_bytes;
  if (!row.contiguous) {
    store_row<Plan, false, false>(parts, gmem_row, row.columns, column_stride_bytes);
  } else if (row.columns < Plan::kN) {
    store_row<Plan, true, false>(parts, gmem_row, row.columns, column_stride_bytes);
  } else {
    store_row<Plan, true, true>(parts, gmem_row, row.columns, column_stride_bytes);
  }
}

}  // namespace devmath::fft
