// How a GEMM sees its operands: A and B as bundles of k-long vectors, whichever way they are stored.
//
// The rows of A and the columns of B play one part: each is an *outer* index, and k is summed over. An operand is
// k-contiguous where k runs along its lines: A in row order, B in column order.
#pragma once

#include "../layout.cuh"
#include "../vector.cuh"

namespace devmath {

/// A shared-memory tile of A (kOuterIsRow) or B: where it starts and how its elements lie.
template <typename TileOrPlainLayout, bool kOuterIsRow>
struct Operand {
  using Layout = TileOrPlainLayout;
  using Element = typename Layout::Element;
  static constexpr bool k_contiguous = kOuterIsRow == Layout::row_order;
  static constexpr int outer_extent = kOuterIsRow ? Layout::rows : Layout::cols;
  static constexpr int k_extent = kOuterIsRow ? Layout::cols : Layout::rows;

  const Element* smem;
  Layout layout;

  DEVMATH_DEVICE Operand(const void* base, int ld) : smem((const Element*)base), layout(ld) {}

  /// The outer index itself, or 0 past the extent. A thread that starts past the edge of C multiplies something that
  /// exists and nobody keeps its sums, so that the tile needs no room for it.
  DEVMATH_DEVICE static int inside(int outer) { return outer < outer_extent ? outer : 0; }

  /// Address of an element. A typed tile has room for whatever its variant reads past the extents.
  DEVMATH_DEVICE const Element* at(int outer, int k) const {
    return smem + (k_contiguous ? layout.line_offset(outer, k) : layout.line_offset(k, outer));
  }

  /// Elements from one element to another, (outer, k) further; constant where both are. Not with a swizzle.
  DEVMATH_DEVICE static constexpr int distance(int outer, int k) {
    static_assert(!Layout::is_plain && Layout::swizzle == 0, "Operand: swizzled lines have no distances");
    return k_contiguous ? outer * Layout::ld + k : k * Layout::ld + outer;
  }

  /// The element nearest to (outer, k) in the tile: a plain array has no room beyond its extents.
  DEVMATH_DEVICE Element clamped(int outer, int k) const {
    return *at(outer < outer_extent ? outer : outer_extent - 1, k < k_extent ? k : k_extent - 1);
  }
};

template <typename Layout> using OperandA = Operand<Layout, true>;
template <typename Layout> using OperandB = Operand<Layout, false>;

}  // namespace devmath
