// Tensor-core instructions of a warpgroup, sm_90a only: wgmma. B lies in shared memory, A there too or in registers.
//
// D (64 x N) += A (64 x K) B (K x N): 32 bytes of k, N a multiple of 8 up to 256. Register i of thread t of a warpgroup
// is row 16 (t / 32) + t % 32 / 4 + 8 (i / 2 % 2), column 8 (i / 4) + 2 (t % 4) + i % 2 of D.
//
//   elements             K    D       an operand in shared memory
//   16-bit floats        16   float   K-major or MN-major
//   float, read as tf32   8   float   K-major; the low 13 bits of a float do not count
//   8-bit floats         32   float   K-major
//   8-bit integers       32   int     K-major
//
// An operand is a grid of *atoms*: 8 lines of 32, 64 or 128 bytes, one after another, their 16-byte chunks permuted by
// XOR as a TileLayout with a swizzle of 2, 4 or 8 does:
//   K-major   k runs along the lines. Eight outer indices (rows of A, columns of B) are an atom, the next eight lie
//             stride_bytes further; the K values of k are inside of an atom.
//   MN-major  outer indices run along the lines. Eight values of k are an atom, the next eight lie stride_bytes
//             further; outer indices past the end of an atom's lines go on leading_bytes further.
// A in registers is what mma.sync takes (mma.cuh), 16 rows a warp: four registers.
// Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions".
//
// Where there is no GPU the instruction is a declaration only: whoever emulates a warpgroup defines it.
#pragma once

#include "mma.cuh"

namespace devmath {

/// Where an operand of one instruction lies.
struct MatrixDescriptor {
  u64 start;      // in units of 16 bytes
  u64 placement;  // strides and swizzle, encoded

  /// `first` is where an atom begins, or a multiple of 32 bytes along its first line where K-major.
  DEVMATH_DEVICE MatrixDescriptor(SmemAddress first, int leading_bytes, int stride_bytes, int swizzle)
      : start((u64)first / 16),
        placement((u64)(leading_bytes / 16) << 16 | (u64)(stride_bytes / 16) << 32 |
                  (u64)(swizzle == 8 ? 1 : swizzle == 4 ? 2 : 3) << 62) {}

  DEVMATH_DEVICE MatrixDescriptor advanced(int bytes) const {
    MatrixDescriptor next = *this;
    next.start += bytes / 16;
    return next;
  }
  /// As the instruction takes it: 14 bits each for start, leading and stride bytes in units of 16.
  DEVMATH_DEVICE u64 bits() const { return placement | (start & 0x3fff); }
};

/// The instruction with kN columns. Who includes this declares what is needed by DEVMATH_WGMMA, below: the text of an
/// instruction names each accumulator, and those of all widths and types would take as long to compile as all the rest.
///   multiply<kAIsMnMajor, kBIsMnMajor>(sums, a, b, adds)     sums[0 .. kN / 2) += A B, asynchronously
///   multiply_registers<kBIsMnMajor>(sums, a, b, adds)        the same with A in the registers a[0 .. 4)
/// kAIsMnMajor and kBIsMnMajor are 0 or 1. Unless it adds, a constant, it sets the sums.
template <int kN, typename ElementA, typename ElementB>
struct Wgmma;

#if DEVMATH_ON_GPU

/// Between writes to the accumulators, or to A and B by this thread, and the first instruction.
DEVMATH_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

/// Waits for every instruction that this warpgroup has issued.
DEVMATH_DEVICE void wgmma_wait() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/// Keeps the compiler from moving uses of a register across this point: it takes wgmma for a synchronous instruction.
DEVMATH_DEVICE void pin_register(float& x) { asm volatile("" : "+f"(x)::"memory"); }
DEVMATH_DEVICE void pin_register(int& x) { asm volatile("" : "+r"(x)::"memory"); }
DEVMATH_DEVICE void pin_register(u32& x) { asm volatile("" : "+r"(x)::"memory"); }

// Every accumulator is named in the text of an instruction, in groups of four: DEVMATH_GROUPS_g(FIRST, NEXT) is the
// numbers below 4 g, the first four handed to FIRST, the others to NEXT.
#define DEVMATH_GROUPS_1(FIRST, NEXT) FIRST(0, 1, 2, 3)
#define DEVMATH_GROUPS_2(FIRST, NEXT) DEVMATH_GROUPS_1(FIRST, NEXT) NEXT(4, 5, 6, 7)
#define DEVMATH_GROUPS_3(FIRST, NEXT) DEVMATH_GROUPS_2(FIRST, NEXT) NEXT(8, 9, 10, 11)
#define DEVMATH_GROUPS_4(FIRST, NEXT) DEVMATH_GROUPS_3(FIRST, NEXT) NEXT(12, 13, 14, 15)
#define DEVMATH_GROUPS_5(FIRST, NEXT) DEVMATH_GROUPS_4(FIRST, NEXT) NEXT(16, 17, 18, 19)
#define DEVMATH_GROUPS_6(FIRST, NEXT) DEVMATH_GROUPS_5(FIRST, NEXT) NEXT(20, 21, 22, 23)
#define DEVMATH_GROUPS_7(FIRST, NEXT) DEVMATH_GROUPS_6(FIRST, NEXT) NEXT(24, 25, 26, 27)
#define DEVMATH_GROUPS_8(FIRST, NEXT) DEVMATH_GROUPS_7(FIRST, NEXT) NEXT(28, 29, 30, 31)
#define DEVMATH_GROUPS_9(FIRST, NEXT) DEVMATH_GROUPS_8(FIRST, NEXT) NEXT(32, 33, 34, 35)
#define DEVMATH_GROUPS_10(FIRST, NEXT) DEVMATH_GROUPS_9(FIRST, NEXT) NEXT(36, 37, 38, 39)
#define DEVMATH_GROUPS_11(FIRST, NEXT) DEVMATH_GROUPS_10(FIRST, NEXT) NEXT(40, 41, 42, 43)
#define DEVMATH_GROUPS_12(FIRST, NEXT) DEVMATH_GROUPS_11(FIRST, NEXT) NEXT(44, 45, 46, 47)
#define DEVMATH_GROUPS_13(FIRST, NEXT) DEVMATH_GROUPS_12(FIRST, NEXT) NEXT(48, 49, 50, 51)
#define DEVMATH_GROUPS_14(FIRST, NEXT) DEVMATH_GROUPS_13(FIRST, NEXT) NEXT(52, 53, 54, 55)
#define DEVMATH_GROUPS_15(FIRST, NEXT) DEVMATH_GROUPS_14(FIRST, NEXT) NEXT(56, 57, 58, 59)
#define DEVMATH_GROUPS_16(FIRST, NEXT) DEVMATH_GROUPS_15(FIRST, NEXT) NEXT(60, 61, 62, 63)
#define DEVMATH_GROUPS_17(FIRST, NEXT) DEVMATH_GROUPS_16(FIRST, NEXT) NEXT(64, 65, 66, 67)
#define DEVMATH_GROUPS_18(FIRST, NEXT) DEVMATH_GROUPS_17(FIRST, NEXT) NEXT(68, 69, 70, 71)
#define DEVMATH_GROUPS_19(FIRST, NEXT) DEVMATH_GROUPS_18(FIRST, NEXT) NEXT(72, 73, 74, 75)
#define DEVMATH_GROUPS_20(FIRST, NEXT) DEVMATH_GROUPS_19(FIRST, NEXT) NEXT(76, 77, 78, 79)
#define DEVMATH_GROUPS_21(FIRST, NEXT) DEVMATH_GROUPS_20(FIRST, NEXT) NEXT(80, 81, 82, 83)
#define DEVMATH_GROUPS_22(FIRST, NEXT) DEVMATH_GROUPS_21(FIRST, NEXT) NEXT(84, 85, 86, 87)
#define DEVMATH_GROUPS_23(FIRST, NEXT) DEVMATH_GROUPS_22(FIRST, NEXT) NEXT(88, 89, 90, 91)
#define DEVMATH_GROUPS_24(FIRST, NEXT) DEVMATH_GROUPS_23(FIRST, NEXT) NEXT(92, 93, 94, 95)
#define DEVMATH_GROUPS_25(FIRST, NEXT) DEVMATH_GROUPS_24(FIRST, NEXT) NEXT(96, 97, 98, 99)
#define DEVMATH_GROUPS_26(FIRST, NEXT) DEVMATH_GROUPS_25(FIRST, NEXT) NEXT(100, 101, 102, 103)
#define DEVMATH_GROUPS_27(FIRST, NEXT) DEVMATH_GROUPS_26(FIRST, NEXT) NEXT(104, 105, 106, 107)
#define DEVMATH_GROUPS_28(FIRST, NEXT) DEVMATH_GROUPS_27(FIRST, NEXT) NEXT(108, 109, 110, 111)
#define DEVMATH_GROUPS_29(FIRST, NEXT) DEVMATH_GROUPS_28(FIRST, NEXT) NEXT(112, 113, 114, 115)
#define DEVMATH_GROUPS_30(FIRST, NEXT) DEVMATH_GROUPS_29(FIRST, NEXT) NEXT(116, 117, 118, 119)
#define DEVMATH_GROUPS_31(FIRST, NEXT) DEVMATH_GROUPS_30(FIRST, NEXT) NEXT(120, 121, 122, 123)
#define DEVMATH_GROUPS_32(FIRST, NEXT) DEVMATH_GROUPS_31(FIRST, NEXT) NEXT(124, 125, 126, 127)

#define DEVMATH_NAMES(i, j, k, l) "%" #i ", %" #j ", %" #k ", %" #l
#define DEVMATH_MORE_NAMES(i, j, k, l) ", %" #i ", %" #j ", %" #k ", %" #l
#define DEVMATH_FLOATS(i, j, k, l) "+f"(sums[i]), "+f"(sums[j]), "+f"(sums[k]), "+f"(sums[l])
#define DEVMATH_MORE_FLOATS(i, j, k, l) , "+f"(sums[i]), "+f"(sums[j]), "+f"(sums[k]), "+f"(sums[l])
#define DEVMATH_INTS(i, j, k, l) "+r"(sums[i]), "+r"(sums[j]), "+r"(sums[k]), "+r"(sums[l])
#define DEVMATH_MORE_INTS(i, j, k, l) , "+r"(sums[i]), "+r"(sums[j]), "+r"(sums[k]), "+r"(sums[l])

// An instruction whose accumulators are `groups` groups of four, SUMS of type Sum. o0 to o6 are the numbers of the
// operands that follow those; *_tail is what its text names after the predicate, with A in shared memory or registers.
#define DEVMATH_WGMMA(n, ElementA, ElementB, ptx, Sum, SUMS, groups, o0, o1, o2, o3, o4, o5, smem_tail, rmem_tail) \
  template <>                                                                                                      \
  struct devmath::Wgmma<n, ElementA, ElementB> {                                                                   \
    template <int kAIsMnMajor, int kBIsMnMajor>                                                                    \
    DEVMATH_DEVICE static void multiply(Sum* sums, MatrixDescriptor a, MatrixDescriptor b, bool adds) {            \
      asm volatile("{.reg .pred add; setp.ne.u32 add, %" #o0 ", 0; wgmma.mma_async.sync.aligned." ptx " {"         \
                   DEVMATH_GROUPS_##groups(DEVMATH_NAMES, DEVMATH_MORE_NAMES)                                      \
                   "}, %" #o1 ", %" #o2 ", add" smem_tail ";}"                                                     \
                   : DEVMATH_GROUPS_##groups(DEVMATH_##SUMS, DEVMATH_MORE_##SUMS)                                  \
                   : "r"((int)adds), "l"(a.bits()), "l"(b.bits()), "n"(kAIsMnMajor), "n"(kBIsMnMajor));            \
    }                                                                                                              \
    template <int kBIsMnMajor>                                                                                     \
    DEVMATH_DEVICE static void multiply_registers(Sum* sums, const u32* a, MatrixDescriptor b, bool adds) {        \
      asm volatile("{.reg .pred add; setp.ne.u32 add, %" #o0 ", 0; wgmma.mma_async.sync.aligned." ptx " {"         \
                   DEVMATH_GROUPS_##groups(DEVMATH_NAMES, DEVMATH_MORE_NAMES)                                      \
                   "}, {%" #o1 ", %" #o2 ", %" #o3 ", %" #o4 "}, %" #o5 ", add" rmem_tail ";}"                     \
                   : DEVMATH_GROUPS_##groups(DEVMATH_##SUMS, DEVMATH_MORE_##SUMS)                                  \
                   : "r"((int)adds), "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits()), "n"(kBIsMnMajor)); \
    }                                                                                                              \
  };

#else

#define DEVMATH_WGMMA(...)

template <int kN, typename ElementA, typename ElementB>
struct Wgmma {
  template <int kAIsMnMajor, int kBIsMnMajor, typename Sum>
  static void multiply(Sum* sums, MatrixDescriptor a, MatrixDescriptor b, bool adds);
  template <int kBIsMnMajor, typename Sum>
  static void multiply_registers(Sum* sums, const u32* a, MatrixDescriptor b, bool adds);
};

inline void wgmma_fence() {}
inline void wgmma_wait() {}
inline void pin_register(float&) {}
inline void pin_register(int&) {}
inline void pin_register(u32&) {}

#endif

}  // namespace devmath
