// The mainloop of mainloop_tma.cuh on a CPU: every CUDA thread is a thread, barriers and copies are emulated.
//
// What the hardware may do later is done as late as it may: a product when its group is waited for, a copy from shared
// memory when its buffer must be free. So whoever gives up a stage or a buffer too early gets wrong numbers. A wait
// that lasts long ends the program.
#pragma once

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#define __device__

namespace devmath {
int block_rank();
}

#include "devmath/gemm/mainloop_tma.cuh"
#include "wgmma_memory.hpp"

namespace devmath {

/// A matrix in memory and the box that its tensor map describes.
struct EmulatedMap {
  char* base;
  i64 lines, length, pitch_bytes;
  int item_bytes, box_lines, box_length, swizzle;

  /// Calls copy(element in memory or null, address of it in the box) for each element of the box at (x, y).
  template <typename Copy>
  void for_each(SmemAddress smem, int x, int y, Copy copy) const {
    if (((u64)smem & 127) != 0 || box_length * item_bytes != swizzle * 16 || box_lines > 256) std::abort();
    for (int line = 0; line < box_lines; ++line) {
      for (int i = 0; i < box_length; ++i) {
        const bool exists = 0 <= y + line && y + line < lines && 0 <= x + i && x + i < length;
        const u64 address = (u64)smem + (line * box_length + i) * item_bytes;
        const u64 swizzled = address ^ ((address >> 7 & (swizzle - 1)) << 4);
        copy(exists ? base + (y + line) * pitch_bytes + (x + i) * item_bytes : nullptr, (char*)swizzled);
      }
    }
  }
  int box_bytes() const { return box_lines * box_length * item_bytes; }
};

struct Barrier {
  int arrivals, missing;
  i64 bytes;
  u32 phase;
};

struct Block {
  u32 rank, count;
  int threads;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<const char*, Barrier> barriers;
  pthread_barrier_t together;
  std::vector<pthread_barrier_t> warps;
  std::vector<SmemAddress> rows;  // that the lanes of each warp name to stmatrix

  /// With the mutex held: flips the phase where nothing is missing.
  void settle(Barrier& barrier) {
    if (barrier.missing > 0 || barrier.bytes > 0) return;
    if (barrier.missing < 0 || barrier.bytes < 0) std::abort();
    barrier.missing = barrier.arrivals;
    ++barrier.phase;
    changed.notify_all();
  }
};

struct ThreadEnd {};

inline Block* block;
inline thread_local int thread_rank;
inline thread_local std::vector<std::function<void()>> issued;
inline thread_local std::deque<std::vector<std::function<void()>>> groups;
inline thread_local std::deque<std::function<void()>> stores;

int block_rank() { return thread_rank; }
u32 grid_rank() { return block->rank; }
u32 grid_size() { return block->count; }
void synchronize_block() { pthread_barrier_wait(&block->together); }
void synchronize_warp() { pthread_barrier_wait(&block->warps[thread_rank / 32]); }
void end_thread() { throw ThreadEnd(); }
void end_kernel() { std::abort(); }

void mbarrier_init(SmemAddress barrier, int arrivals) { block->barriers[barrier] = {arrivals, arrivals, 0, 0}; }

void mbarrier_arrive_and_expect(SmemAddress address, int bytes) {
  std::lock_guard<std::mutex> lock(block->mutex);
  Barrier& barrier = block->barriers.at(address);
  barrier.bytes += bytes;
  --barrier.missing;
  block->settle(barrier);
}
void mbarrier_arrive(SmemAddress barrier) { mbarrier_arrive_and_expect(barrier, 0); }

void mbarrier_wait(SmemAddress address, u32 parity) {
  std::unique_lock<std::mutex> lock(block->mutex);
  const Barrier& barrier = block->barriers.at(address);
  const auto over = [&] { return (barrier.phase & 1) != parity; };
  if (!block->changed.wait_for(lock, std::chrono::seconds(10), over)) {
    std::fprintf(stderr, "thread %d waits for ever\n", thread_rank);
    std::abort();
  }
}

void load_box(SmemAddress smem, const void* map, SmemAddress address, int x, int y) {
  const EmulatedMap& box = *(const EmulatedMap*)map;
  box.for_each(smem, x, y, [&](const char* element, char* target) {
    if (element) {
      std::memcpy(target, element, box.item_bytes);
    } else {
      std::memset(target, 0, box.item_bytes);
    }
  });
  std::lock_guard<std::mutex> lock(block->mutex);
  Barrier& barrier = block->barriers.at(address);
  barrier.bytes -= box.box_bytes();
  block->settle(barrier);
}

void store_box(const void* map, SmemAddress smem, int x, int y) {
  stores.push_back([=] {
    const EmulatedMap& box = *(const EmulatedMap*)map;
    box.for_each(smem, x, y, [&](char* element, const char* source) {
      if (element) std::memcpy(element, source, box.item_bytes);
    });
  });
}
template <int kPending>
void wait_for_boxes_read() {
  for (; stores.size() > kPending; stores.pop_front()) stores.front()();
}

void stmatrix_x4(SmemAddress row, const u32* rmem) {
  const int warp = thread_rank / 32 * 32, lane = thread_rank % 32;
  block->rows[thread_rank] = row;
  synchronize_warp();
  for (int q = 0; q < 4; ++q) std::memcpy((char*)block->rows[warp + 8 * q + lane / 4] + lane % 4 * 4, &rmem[q], 4);
  synchronize_warp();
}
void write_pair(SmemAddress smem, float first, float second) {
  const float pair[2] = {first, second};
  std::memcpy((char*)smem, pair, sizeof(pair));
}

template <typename Element>
double factor_of(Element x) {
  if constexpr (sizeof(Element) == 1 && !IsNarrow<Element>::value) {
    return x;
  } else {
    return widen(x);
  }
}

template <int kN, typename ElementA, typename ElementB>
template <int kAIsMnMajor, int kBIsMnMajor, typename Sum>
void Wgmma<kN, ElementA, ElementB>::multiply(Sum* sums, MatrixDescriptor a, MatrixDescriptor b, bool adds) {
  issued.push_back([=, thread = thread_rank % 128] {
    const MatrixInMemory matrix_a(a, kAIsMnMajor), matrix_b(b, kBIsMnMajor);
    for (int i = 0; i < kN / 2; ++i) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8, col = i / 4 * 8 + thread % 4 * 2 + i % 2;
      double sum = adds ? sums[i] : Sum(0);
      for (int k = 0; k < 32 / (int)sizeof(ElementA); ++k) {
        sum += factor_of(matrix_a.element<ElementA>(row, k)) * factor_of(matrix_b.element<ElementB>(col, k));
      }
      sums[i] = (Sum)sum;
    }
  });
}
void wgmma_commit() {
  groups.push_back(std::move(issued));
  issued.clear();
}
template <int kPending>
void wgmma_wait_for_groups() {
  for (; groups.size() > kPending; groups.pop_front()) {
    for (const auto& product : groups.front()) product();
  }
  synchronize_warp();
}

/// Runs kernel(shared memory) in every thread of every block, one block after another.
inline void launch(int blocks, int threads, int shared_bytes, const std::function<void(char*)>& kernel) {
  for (int rank = 0; rank < blocks; ++rank) {
    std::vector<char> memory(shared_bytes + 1024, (char)0xff);
    char* const smem = (char*)(((u64)memory.data() + 1023) / 1024 * 1024);
    Block now{(u32)rank, (u32)blocks, threads, {}, {}, {}, {}, std::vector<pthread_barrier_t>(threads / 32), {}};
    now.rows.resize(threads);
    pthread_barrier_init(&now.together, nullptr, threads);
    for (auto& warp : now.warps) pthread_barrier_init(&warp, nullptr, 32);
    block = &now;
    std::vector<std::thread> running;
    for (int thread = 0; thread < threads; ++thread) {
      running.emplace_back([=, &kernel] {
        thread_rank = thread;
        try {
          kernel(smem);
        } catch (const ThreadEnd&) {
        }
        if (!issued.empty() || !groups.empty() || !stores.empty()) std::abort();  // memory is gone now
      });
    }
    for (auto& thread : running) thread.join();
  }
}

}  // namespace devmath
