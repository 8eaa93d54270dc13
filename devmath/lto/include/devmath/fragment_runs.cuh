// Runs: neighbours along the rows of a fragment's tile that one access can move, found in the digits of its map.
//
// A thread's registers hold *pieces*: `own` neighbours each. The lanes next to it may hold the neighbours of those. Of
// a *group* of `lanes` pieces, one lane each can then have all that is next to one of them: the lanes transpose what
// they hold (lanes.cuh), and lane p of them ends with piece p of the group, lengthened by those of the other lanes.
//
//   mma, wgmma     pairs of columns, dealt to four lanes: own 2, lanes 2 for runs of 4, lanes 4 for runs of 8
//   FMA units      own 4, 2 or 1; where 1, neighbouring lanes hold neighbours
//
// Runs along columns are those along the rows of the transposed fragment.
#pragma once

#include "fragment.cuh"

namespace devmath {

/// How a fragment is dealt out: pieces g / spread * spread * lanes + g % spread + p * spread, p < lanes, are group g.
struct Dealing { int own, lanes, spread; };

/// The largest power of two that divides x and is at most `most`.
DEVMATH_CONSTEXPR int power_of_two_in(int x, int most) {
  int power = 1;
  while (x % (2 * power) == 0 && 2 * power <= most) power *= 2;
  return power;
}

/// What a fragment's map says about a dealing. Digits map 0 to 0: row(thread, 0) is the thread's share of a row,
/// row(0, i) the register's.
template <typename Fragment>
struct DealingOf {
  static constexpr Digit neighbours = Fragment::ColOfRegister::of_stride(1);

  DEVMATH_DEVICE static constexpr int lane_distance(int own) {
    return Fragment::ColOfThread::of_stride(own).divisor;
  }
  /// The first register of a piece; element q of it is q * neighbours.divisor further.
  DEVMATH_DEVICE static constexpr int register_of(int own, int piece) {
    return piece / neighbours.divisor * neighbours.divisor * own + piece % neighbours.divisor;
  }
  DEVMATH_DEVICE static constexpr int piece_of(Dealing dealing, int group, int place) {
    const int spread = dealing.spread;
    return group / spread * spread * dealing.lanes + group % spread + place * spread;
  }

  /// Every piece consists of neighbours, and starts where a run of `run` elements can.
  DEVMATH_DEVICE static constexpr bool has_pieces(int own, int run) {
    for (int piece = 0; piece < Fragment::size / own; ++piece) {
      const int first = register_of(own, piece), row = Fragment::row(0, first), col = Fragment::col(0, first);
      if (col % run != 0) return false;
      for (int q = 1; q < own; ++q) {
        const int i = first + q * neighbours.divisor;
        if (Fragment::row(0, i) != row || Fragment::col(0, i) != col + q) return false;
      }
    }
    return true;
  }
  /// Pieces of `lanes` lanes are neighbours, and those of the first of them start where a run can.
  DEVMATH_DEVICE static constexpr bool has_lanes(int own, int lanes) {
    const int distance = lane_distance(own);
    if (lanes > 1 && distance * lanes > 32) return false;
    for (int lane = 0; lane < 32; ++lane) {
      const int place = lanes > 1 ? lane / distance % lanes : 0, first = lane - place * distance;
      const int row = Fragment::row(first, 0), col = Fragment::col(first, 0);
      if (col % (own * lanes) != 0 || Fragment::col(32 * lane, 0) % (own * lanes) != 0) return false;
      if (Fragment::row(lane, 0) != row || Fragment::col(lane, 0) != col + place * own) return false;
    }
    return true;
  }
  /// Groups up to the last piece; some of their pieces may lie past it.
  DEVMATH_DEVICE static constexpr int groups(Dealing dealing) {
    return divide_up(Fragment::size / dealing.own, dealing.lanes * dealing.spread) * dealing.spread;
  }
  /// Piece p of a group lies the same way from the group's first piece in every group.
  DEVMATH_DEVICE static constexpr bool has_alike_groups(Dealing dealing) {
    const int pieces = Fragment::size / dealing.own;
    for (int group = 0; group < groups(dealing); ++group) {
      const int start = register_of(dealing.own, piece_of(dealing, group, 0));
      for (int place = 1; place < dealing.lanes && piece_of(dealing, group, place) < pieces; ++place) {
        const int i = register_of(dealing.own, piece_of(dealing, group, place));
        const int step = register_of(dealing.own, piece_of(dealing, 0, place));
        if (Fragment::row(0, i) != Fragment::row(0, start) + Fragment::row(0, step)) return false;
        if (Fragment::col(0, i) != Fragment::col(0, start) + Fragment::col(0, step)) return false;
      }
    }
    return true;
  }
  /// Pieces from one to the next in the same row, so that the lanes of a group write one stretch of memory.
  DEVMATH_DEVICE static constexpr int pieces_to_next_in_row(int own) {
    for (int piece = 1; piece < Fragment::size / own; ++piece) {
      if (Fragment::row(0, register_of(own, piece)) == 0) return piece;
    }
    return 1;
  }

  /// The longest runs of at most `most` elements, a power of two; `by_lanes` allows those that lanes hold together.
  DEVMATH_DEVICE static constexpr Dealing longest(int most, bool by_lanes) {
    int own = power_of_two_in(neighbours.modulus, most);
    while (own > 1 && !has_pieces(own, own)) own /= 2;
    int lanes = by_lanes ? power_of_two_in(Fragment::ColOfThread::of_stride(own).modulus, most / own) : 1;
    for (; lanes > 1; lanes /= 2) {
      const int pieces = Fragment::size / own;
      if (lanes > pieces || !has_pieces(own, own * lanes) || !has_lanes(own, lanes)) continue;
      const Dealing along_row = {own, lanes, pieces_to_next_in_row(own)};
      if (has_alike_groups(along_row)) return along_row;
      for (int spread = 1; spread * lanes <= pieces; ++spread) {
        if (has_alike_groups({own, lanes, spread})) return {own, lanes, spread};
      }
    }
    while (own > 1 && !has_lanes(own, 1)) own /= 2;
    return {own, 1, 1};
  }
};

/// The runs of a fragment, at most kMost elements long.
template <typename Fragment, int kMost, bool kByLanes>
struct Runs {
  using Of = DealingOf<Fragment>;
  static constexpr Dealing dealing = Of::longest(kMost, kByLanes);
  static constexpr int own = dealing.own, lanes = dealing.lanes, length = own * lanes;
  static constexpr int lane_distance = Of::lane_distance(own), register_distance = Of::neighbours.divisor;
  static constexpr int pieces = Fragment::size / own, groups = Of::groups(dealing);

  /// Place of a thread among the lanes that share a run, and number of the piece whose run it gets.
  DEVMATH_DEVICE static int place(int thread) { return lanes > 1 ? (u32)thread / lane_distance % lanes : 0; }
  /// First register of piece `place` of a group.
  DEVMATH_DEVICE static constexpr int register_of(int group, int place) {
    return Of::register_of(own, Of::piece_of(dealing, group, place));
  }
  DEVMATH_DEVICE static constexpr bool exists(int group, int place) {
    return Of::piece_of(dealing, group, place) < pieces;
  }
  /// Row and column of the first element of a thread's run of group 0; group g lies row(0, register_of(g, 0)) further.
  DEVMATH_DEVICE static int row(int thread) { return Fragment::row(thread, register_of(0, place(thread))); }
  DEVMATH_DEVICE static int col(int thread) {
    return Fragment::col(thread, register_of(0, place(thread))) - place(thread) * own;
  }
};

}  // namespace devmath
