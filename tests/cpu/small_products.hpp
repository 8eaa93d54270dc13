// The products of one warp on a CPU: its lanes run one after another between two barriers.
#pragma once

#define __device__

#include "block_fibers.hpp"
#include "devmath/fragment_copy.cuh"
#include "devmath/gemm/fma.cuh"
#include "devmath/warp_copy.cuh"

namespace devmath {

/// A dense batch of `count` matrices: in order of the lines of their tiles where it is packed, else by rows.
struct Batch {
  char* gmem;
  int count;
  bool packed;

  /// The matrix of a lane's product, which has no rows past the end.
  template <typename Tiles>
  StridedArray<typename Tiles::Element> of(int lane) const {
    using Layout = typename Tiles::Layout;
    using Element = typename Tiles::Element;
    const int product = lane / Tiles::threads;
    constexpr int kItem = sizeof(Element);
    Element* const first = (Element*)gmem + product * Layout::rows * Layout::cols;
    return along_lines<Layout>(first, product < count ? Layout::rows : 0, Layout::cols, Layout::cols * kItem, kItem);
  }
};

/// Calls body(lane, the lane's tile) for all lanes.
template <typename Tiles, typename Body>
void for_each_lane(char* smem, Body body) {
  for_each_thread<32>([&](int lane) {
    body(lane, (typename Tiles::Element*)(smem + lane / Tiles::threads * Tiles::stride_bytes));
  });
}

template <typename Tiles>
void load_tiles(Batch batch, char* smem) {
  for_each_lane<Tiles>(smem, [&](int lane, typename Tiles::Element* own) {
    if (batch.packed) {
      load_packed<Tiles>(lane, smem, batch.gmem);
    } else {
      const StridedArray<typename Tiles::Element> array = batch.of<Tiles>(lane);
      copy_in<typename Tiles::Layout, Tiles::threads>(
          lane % Tiles::threads, own,
          {array.base, array.rows, array.columns, array.row_stride_bytes, array.column_stride_bytes});
    }
  });
}

template <typename Tiles>
void store_tiles(Batch batch, char* smem) {
  for_each_lane<Tiles>(smem, [&](int lane, typename Tiles::Element* own) {
    if (batch.packed) {
      store_packed<Tiles>(lane, smem, batch.gmem);
    } else {
      copy_out<typename Tiles::Layout, Tiles::threads>(lane % Tiles::threads, own, batch.of<Tiles>(lane));
    }
  });
}

using Unit = void (*)(const void* a, int lda, const void* b, int ldb, void* rmem_acc);

/// c = a b for each product of the warp, both operands through tiles, which then are stored to a_copy and b_copy.
template <typename TilesA, typename TilesB, typename Fragment, typename Accumulator>
void multiply_batch(Unit unit, Batch a, Batch b, Batch c, Batch a_copy, Batch b_copy, char* smem_a, char* smem_b) {
  load_tiles<TilesA>(a, smem_a);
  load_tiles<TilesB>(b, smem_b);
  for_each_lane<TilesA>(smem_a, [&](int lane, const typename TilesA::Element* own_a) {
    Accumulator rmem_acc[Fragment::size] = {};
    const int product = lane / TilesB::threads;
    unit(own_a, -1, smem_b + product * TilesB::stride_bytes, -1, rmem_acc);  // nobody may look at the lds
    Accumulator* const first = (Accumulator*)c.gmem + product * Fragment::rows * Fragment::cols;
    constexpr int kItem = sizeof(Accumulator);
    copy_fragment<Fragment>(lane, rmem_acc,
                            clipped_array(first, product < c.count ? Fragment::rows : 0, Fragment::cols,
                                          Fragment::cols * kItem, kItem, Fragment::rows, Fragment::cols));
  });
  store_tiles<TilesA>(a_copy, smem_a);
  store_tiles<TilesB>(b_copy, smem_b);
}

}  // namespace devmath
