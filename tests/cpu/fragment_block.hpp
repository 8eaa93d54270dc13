// The reductions of fragment_reduce.cuh on a CPU.
#pragma once

#include "block_fibers.hpp"
#include "devmath/fragment_reduce.cuh"

namespace devmath {

/// Thread t holds the registers from fragments[t * size] on, and gets its slots from vectors[t * slots] on: twice, as
/// a loop would have it, the second time with every element doubled.
template <typename Operation, typename Fragment, typename Element, typename Value>
void reduce_rows_by_block(int threads, bool descending, const void* fragments, void* vectors, void* smem) {
  struct Call { const Element* fragments; Value* vectors; void* smem; } call = {(const Element*)fragments,
                                                                               (Value*)vectors, smem};
  Block(threads, descending, [](void* argument) {
    const Call& call = *(const Call*)argument;
    constexpr int slots = Fragment::RowOfRegister::count;
    const int rank = block_rank();
    Element rmem[Fragment::size];
    for (int i = 0; i < Fragment::size; ++i) rmem[i] = call.fragments[rank * Fragment::size + i];
    reduce_rows<Operation, Fragment, Element, Value>(rmem, call.vectors + rank * slots, call.smem, 0);
    for (Element& x : rmem) x = convert<Element>(convert<Value>(x) + convert<Value>(x));
    reduce_rows<Operation, Fragment, Element, Value>(rmem, call.vectors + (block_size() + rank) * slots, call.smem, 1);
  }, &call);
}

template <typename From, typename To, typename Value>
void redistribute_rows_by_block(int threads, bool descending, const void* from, void* to, void* smem) {
  struct Call { const Value* from; Value* to; void* smem; } call = {(const Value*)from, (Value*)to, smem};
  Block(threads, descending, [](void* argument) {
    const Call& call = *(const Call*)argument;
    const int rank = block_rank();
    redistribute_rows<From, To, Value>(call.from + rank * From::RowOfRegister::count,
                                       call.to + rank * To::RowOfRegister::count, call.smem, 0);
  }, &call);
}

}  // namespace devmath
