// Runs the kernels of a transform's tests on a CPU: the threads of a block are fibers that change hands at barriers.
#pragma once

#include <ucontext.h>

#include <limits>
#include <vector>

#include "devmath/fft/block_fft.cuh"
#include "devmath/fft/memory.cuh"

namespace devmath {

class Block {
 public:
  /// Calls body(argument) in every thread. `descending` is the order of the threads between two barriers: a result
  /// that depends on it misses a barrier.
  Block(int threads, bool descending, void (*body)(void*), void* argument)
      : threads_(threads), finished_(threads), body_(body), argument_(argument) {
    current = this;
    for (int rank = 0; rank < threads; ++rank) start(rank);
    for (bool running = true; running;) {
      running = false;
      for (int i = 0; i < threads; ++i) {
        rank_ = descending ? threads - 1 - i : i;
        if (finished_[rank_]) continue;
        running = true;
        swapcontext(&scheduler_, &threads_[rank_].context);
      }
    }
  }

  int rank() const { return rank_; }
  void wait() { swapcontext(&threads_[rank_].context, &scheduler_); }

  static Block* current;

 private:
  struct Thread {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(65536);
  };

  void start(int rank) {
    Thread& thread = threads_[rank];
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.data();
    thread.context.uc_stack.ss_size = thread.stack.size();
    thread.context.uc_link = &scheduler_;
    makecontext(&thread.context, run, 0);
  }
  static void run() {
    current->body_(current->argument_);
    current->finished_[current->rank_] = true;
  }

  std::vector<Thread> threads_;
  std::vector<bool> finished_;
  ucontext_t scheduler_;
  void (*body_)(void*);
  void* argument_;
  int rank_ = 0;
};

Block* Block::current = nullptr;
int block_rank() { return Block::current->rank(); }
void wait_for_block() { Block::current->wait(); }

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
