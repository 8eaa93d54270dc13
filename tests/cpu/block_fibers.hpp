// The threads of a block on a CPU: fibers that change hands at barriers, and where the lanes of a warp exchange words.
#pragma once

#include <ucontext.h>

#include <vector>

#include "devmath/lanes.cuh"

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
  int size() const { return (int)threads_.size(); }
  u32& shown(int rank) { return threads_[rank].shown; }
  void wait() { swapcontext(&threads_[rank_].context, &scheduler_); }

  static Block* current;

 private:
  struct Thread {
    ucontext_t context;
    std::vector<char> stack = std::vector<char>(65536);
    u32 shown = 0;
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
int block_size() { return Block::current->size(); }
void wait_for_block() { Block::current->wait(); }

/// Calls work(rank) in every thread of a block.
template <int kThreads, typename Work>
void for_each_thread(Work work) {
  Block(kThreads, false, [](void* argument) { (*(Work*)argument)(Block::current->rank()); }, &work);
}

/// All threads exchange at once; a word is replaced once every thread has read.
u32 shuffle_xor(u32 word, int lane_bits) {
  Block& block = *Block::current;
  block.shown(block.rank()) = word;
  block.wait();
  const u32 received = block.shown(block.rank() ^ lane_bits);
  block.wait();
  return received;
}

bool all_lanes(bool condition) {
  Block& block = *Block::current;
  block.shown(block.rank()) = condition;
  block.wait();
  bool all = true;
  for (int lane = 0; lane < 32; ++lane) all = all && block.shown(block.rank() / 32 * 32 + lane);
  block.wait();
  return all;
}

}  // namespace devmath
