// Runs GEMM units on a CPU: the warps of a block one after another from barrier to barrier, the lanes of a warp as
// fibers that change hands at warp-wide instructions, which are emulated here.
#pragma once

#include <ucontext.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#define __device__

namespace devmath {
int block_rank();
}

#include "devmath/gemm/fma.cuh"
#include "devmath/gemm/mma_sync.cuh"

namespace devmath {

/// What a lane shows the others in a warp-wide instruction.
struct Shown {
  SmemAddress row;
  u32 a[4], b[2];
};

class Warp {
 public:
  static constexpr int kLanes = 32;

  Warp(int first_rank, void (*body)(void*), void* argument)
      : first_rank_(first_rank), body_(body), argument_(argument) {
    for (Lane& lane : lanes_) start(lane);
  }

  /// Runs until every lane waits for the block, or has finished; false once they all have.
  bool advance() {
    current = this;
    for (Lane& lane : lanes_) lane.state = lane.state == kFinished ? kFinished : kRunning;
    for (bool running = true; running;) {
      running = false;
      for (lane_ = 0; lane_ < kLanes; ++lane_) {
        if (lanes_[lane_].state != kRunning) continue;
        running = true;
        swapcontext(&scheduler_, &lanes_[lane_].context);
      }
    }
    for (const Lane& lane : lanes_) {
      if (lane.state != lanes_[0].state) std::abort();  // a barrier that not every lane comes to
    }
    return lanes_[0].state != kFinished;
  }

  int lane() const { return lane_; }
  int rank() const { return first_rank_ + lane_; }
  const Shown& of(int lane) const { return lanes_[lane].shown; }

  /// Every lane's operand is there when this returns; the instruction ends with wait(), so that none is replaced early.
  void show(const Shown& shown) {
    lanes_[lane_].shown = shown;
    wait();
  }
  void wait() { swapcontext(&lanes_[lane_].context, &scheduler_); }
  void wait_for_block() {
    lanes_[lane_].state = kAtBarrier;
    wait();
  }

  static Warp* current;

 private:
  enum State { kRunning, kAtBarrier, kFinished };
  struct Lane {
    static constexpr int kStackBytes = 262144;
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[kStackBytes]};
    Shown shown;
    State state = kRunning;
  };

  void start(Lane& lane) {
    getcontext(&lane.context);
    lane.context.uc_stack.ss_sp = lane.stack.get();
    lane.context.uc_stack.ss_size = Lane::kStackBytes;
    lane.context.uc_link = &scheduler_;
    makecontext(&lane.context, run, 0);
  }
  static void run() {
    current->body_(current->argument_);
    current->lanes_[current->lane_].state = kFinished;
  }

  Lane lanes_[kLanes];
  ucontext_t scheduler_;
  int first_rank_, lane_ = 0;
  void (*body_)(void*);
  void* argument_;
};

Warp* Warp::current = nullptr;
int block_rank() { return Warp::current->rank(); }

template <bool kTranspose>
void ldmatrix(u32* rmem, int matrices, SmemAddress row) {
  Warp& warp = *Warp::current;
  warp.show({row, {}, {}});
  for (int q = 0; q < matrices; ++q) {
    rmem[q] = 0;
    for (int half = 0; half < 2; ++half) {
      const int along = warp.lane() / 4, across = warp.lane() % 4 * 2 + half;
      const auto* elements = (const u16*)warp.of(8 * q + (kTranspose ? across : along)).row;
      if ((std::uintptr_t)elements % 16 != 0) std::abort();
      rmem[q] |= (u32)elements[kTranspose ? along : across] << (16 * half);
    }
  }
  warp.wait();
}

template <bool kTranspose> void ldmatrix_x4(u32* rmem, SmemAddress row) { ldmatrix<kTranspose>(rmem, 4, row); }
template <bool kTranspose> void ldmatrix_x2(u32* rmem, SmemAddress row) { ldmatrix<kTranspose>(rmem, 2, row); }

template <typename Element>
void mma(float* d, const u32* a, const u32* b) {
  Warp& warp = *Warp::current;
  warp.show({nullptr, {a[0], a[1], a[2], a[3]}, {b[0], b[1]}});
  for (int q = 0; q < 4; ++q) {
    const int row = warp.lane() / 4 + 8 * (q / 2), col = warp.lane() % 4 * 2 + q % 2;
    double sum = d[q];
    for (int k = 0; k < 16; ++k) {
      const int pair = k % 8 / 2, shift = k % 2 * 16;
      const Element of_a{(u16)(warp.of(row % 8 * 4 + pair).a[row / 8 + k / 8 * 2] >> shift)};
      const Element of_b{(u16)(warp.of(col * 4 + pair).b[k / 8] >> shift)};
      sum += (double)widen(of_a) * widen(of_b);
    }
    d[q] = (float)sum;
  }
  warp.wait();
}

void mma_m16n8k16(float* d, const u32* a, const u32* b, Half) { mma<Half>(d, a, b); }
void mma_m16n8k16(float* d, const u32* a, const u32* b, BFloat16) { mma<BFloat16>(d, a, b); }

/// Multiplies in float what is summed in halves.
template <typename Multiply>
void by_wide_sums(Half* d, Multiply multiply) {
  float wide[4];
  for (int q = 0; q < 4; ++q) wide[q] = widen(d[q]);
  multiply(wide);
  for (int q = 0; q < 4; ++q) d[q] = convert<Half>(wide[q]);
}

void mma_m16n8k16(Half* d, const u32* a, const u32* b, Half) {
  by_wide_sums(d, [&](float* wide) { mma<Half>(wide, a, b); });
}

inline double number(u8 bits, i8) { return (i8)bits; }
inline double number(u8 bits, u8) { return bits; }
template <typename Float8>
double number(u8 bits, Float8) { return widen(Float8{bits}); }

/// Exact sums of 32 products; those of integers wrap around.
template <typename A, typename B, typename Sum>
void mma_of_bytes(Sum* d, const u32* a, const u32* b) {
  Warp& warp = *Warp::current;
  warp.show({nullptr, {a[0], a[1], a[2], a[3]}, {b[0], b[1]}});
  for (int q = 0; q < 4; ++q) {
    const int row = warp.lane() / 4 + 8 * (q / 2), col = warp.lane() % 4 * 2 + q % 2;
    double sum = d[q];
    for (int k = 0; k < 32; ++k) {
      const int four = k % 16 / 4, shift = k % 4 * 8;
      const u8 of_a = (u8)(warp.of(row % 8 * 4 + four).a[row / 8 + k / 16 * 2] >> shift);
      const u8 of_b = (u8)(warp.of(col * 4 + four).b[k / 16] >> shift);
      sum += number(of_a, A()) * number(of_b, B());
    }
    if constexpr (IsSame<Sum, int>::value) {
      d[q] = (int)(u32)(i64)sum;
    } else {
      d[q] = (float)sum;
    }
  }
  warp.wait();
}

template <typename A, typename B> void mma_m16n8k32(int* d, const u32* a, const u32* b, A, B) {
  mma_of_bytes<A, B>(d, a, b);
}
#if DEVMATH_HAS_FLOAT8_MMA
template <typename Sum, typename A, typename B> void mma_m16n8k32(Sum* d, const u32* a, const u32* b, A, B) {
  if constexpr (IsSame<Sum, Half>::value) {
    by_wide_sums(d, [&](float* wide) { mma_of_bytes<A, B>(wide, a, b); });
  } else {
    mma_of_bytes<A, B>(d, a, b);
  }
}
#endif

}  // namespace devmath

#include "gemm_mma_emulation.hpp"

namespace devmath {

/// Where an operand lies: its size, its distance from a 1024-byte boundary, its leading dimension.
struct Place {
  int size_bytes, offset_bytes, ld;
};

/// One call of a unit by a block; C is the tile, or the accumulators of all threads.
struct Request {
  double alpha[2], beta[2];
  int unit, threads;
  Place a, b, c;
};

struct Call {
  Request request;
  void (*unit)(const Call&);
  char *a, *b, *c;
};

/// Exactly so many bytes, so that the address sanitizer sees an access past them.
inline char* read_operand(Place place) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 1024, place.offset_bytes + place.size_bytes) != 0) std::abort();
  char* operand = (char*)memory + place.offset_bytes;
  if (std::fread(operand, 1, place.size_bytes, stdin) != (std::size_t)place.size_bytes) std::abort();
  return operand;
}

/// Reads a request and its operands from stdin, writes what became of C to stdout.
inline int serve(void (*const* units)(const Call&)) {
  Call call;
  if (std::fread(&call.request, sizeof(Request), 1, stdin) != 1) return 1;
  const Request& request = call.request;
  call.unit = units[request.unit];
  call.a = read_operand(request.a);
  call.b = read_operand(request.b);
  call.c = read_operand(request.c);
  std::vector<std::unique_ptr<Warp>> warps;
  for (int rank = 0; rank < request.threads; rank += Warp::kLanes) {
    const auto body = [](void* argument) { ((const Call*)argument)->unit(*(const Call*)argument); };
    warps.emplace_back(new Warp(rank, body, &call));
  }
  for (bool running = true; running;) {
    running = false;
    for (auto& warp : warps) running |= warp->advance();
  }
  const bool written = std::fwrite(call.c, 1, request.c.size_bytes, stdout) == (std::size_t)request.c.size_bytes;
  std::free(call.a - request.a.offset_bytes);
  std::free(call.b - request.b.offset_bytes);
  std::free(call.c - request.c.offset_bytes);
  return written ? 0 : 1;
}

}  // namespace devmath
