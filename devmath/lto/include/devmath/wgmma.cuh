// Tensor-core instructions of a warpgroup, sm_90a only: wgmma on 16-bit operands that both lie in shared memory.
//
// D (64 x N) += A (64 x 16) B (16 x N), float accumulators, N any multiple of 8 up to 256. Register i of thread t
// of a warpgroup is row 16 (t / 32) + t % 32 / 4 + 8 (i / 2 % 2), column 8 (i / 4) + 2 (t % 4) + i % 2 of D.
//
// An operand is a grid of *atoms*: 8 lines of 32, 64 or 128 bytes, one after another, their 16-byte chunks permuted by
// XOR as a TileLayout with a swizzle of 2, 4 or 8 does. Either way round is legal for 16-bit elements:
//   K-major   k runs along the lines. Eight outer indices (rows of A, columns of B) are an atom, the next eight lie
//             stride_bytes further; the 16 values of k are inside of an atom.
//   MN-major  outer indices run along the lines. Eight values of k are an atom, the next eight lie stride_bytes
//             further; outer indices past the end of an atom's lines go on leading_bytes further.
// Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout".
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

/// The instruction with kN columns, for either type of elements; kAIsMnMajor and kBIsMnMajor are 0 or 1:
///   Wgmma<kN>::multiply<kAIsMnMajor, kBIsMnMajor>(sums, a, b, Element())    sums[0 .. kN / 2) += A B, asynchronously
template <int kN>
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
#define DEVMATH_OPERANDS(i, j, k, l) "+f"(sums[i]), "+f"(sums[j]), "+f"(sums[k]), "+f"(sums[l])
#define DEVMATH_MORE_OPERANDS(i, j, k, l) , "+f"(sums[i]), "+f"(sums[j]), "+f"(sums[k]), "+f"(sums[l])

// An instruction with n columns and its groups of accumulators; then the numbers of the operands that follow those.
#define DEVMATH_WGMMA_OF(cpp_type, ptx_type, n, groups, a_bits, b_bits, a_major, b_major)                          \
  template <int kAIsMnMajor, int kBIsMnMajor>                                                                      \
  DEVMATH_DEVICE static void multiply(float* sums, MatrixDescriptor a, MatrixDescriptor b, cpp_type) {             \
    asm volatile("{.reg .pred add; setp.eq.u32 add, 0, 0; "                                                        \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." ptx_type "." ptx_type " {"                      \
                 DEVMATH_GROUPS_##groups(DEVMATH_NAMES, DEVMATH_MORE_NAMES)                                        \
                 "}, %" #a_bits ", %" #b_bits ", add, 1, 1, %" #a_major ", %" #b_major ";}"                        \
                 : DEVMATH_GROUPS_##groups(DEVMATH_OPERANDS, DEVMATH_MORE_OPERANDS)                                \
                 : "l"(a.bits()), "l"(b.bits()), "n"(kAIsMnMajor), "n"(kBIsMnMajor));                              \
  }
#define DEVMATH_WGMMA(n, ...)                          \
  template <>                                          \
  struct Wgmma<n> {                                    \
    DEVMATH_WGMMA_OF(Half, "f16", n, __VA_ARGS__)      \
    DEVMATH_WGMMA_OF(BFloat16, "bf16", n, __VA_ARGS__) \
  };
DEVMATH_WGMMA(8, 1, 4, 5, 6, 7)
DEVMATH_WGMMA(16, 2, 8, 9, 10, 11)
DEVMATH_WGMMA(24, 3, 12, 13, 14, 15)
DEVMATH_WGMMA(32, 4, 16, 17, 18, 19)
DEVMATH_WGMMA(40, 5, 20, 21, 22, 23)
DEVMATH_WGMMA(48, 6, 24, 25, 26, 27)
DEVMATH_WGMMA(56, 7, 28, 29, 30, 31)
DEVMATH_WGMMA(64, 8, 32, 33, 34, 35)
DEVMATH_WGMMA(72, 9, 36, 37, 38, 39)
DEVMATH_WGMMA(80, 10, 40, 41, 42, 43)
DEVMATH_WGMMA(88, 11, 44, 45, 46, 47)
DEVMATH_WGMMA(96, 12, 48, 49, 50, 51)
DEVMATH_WGMMA(104, 13, 52, 53, 54, 55)
DEVMATH_WGMMA(112, 14, 56, 57, 58, 59)
DEVMATH_WGMMA(120, 15, 60, 61, 62, 63)
DEVMATH_WGMMA(128, 16, 64, 65, 66, 67)
DEVMATH_WGMMA(136, 17, 68, 69, 70, 71)
DEVMATH_WGMMA(144, 18, 72, 73, 74, 75)
DEVMATH_WGMMA(152, 19, 76, 77, 78, 79)
DEVMATH_WGMMA(160, 20, 80, 81, 82, 83)
DEVMATH_WGMMA(168, 21, 84, 85, 86, 87)
DEVMATH_WGMMA(176, 22, 88, 89, 90, 91)
DEVMATH_WGMMA(184, 23, 92, 93, 94, 95)
DEVMATH_WGMMA(192, 24, 96, 97, 98, 99)
DEVMATH_WGMMA(200, 25, 100, 101, 102, 103)
DEVMATH_WGMMA(208, 26, 104, 105, 106, 107)
DEVMATH_WGMMA(216, 27, 108, 109, 110, 111)
DEVMATH_WGMMA(224, 28, 112, 113, 114, 115)
DEVMATH_WGMMA(232, 29, 116, 117, 118, 119)
DEVMATH_WGMMA(240, 30, 120, 121, 122, 123)
DEVMATH_WGMMA(248, 31, 124, 125, 126, 127)
DEVMATH_WGMMA(256, 32, 128, 129, 130, 131)

#else

template <int kN>
struct Wgmma {
  template <int kAIsMnMajor, int kBIsMnMajor, typename Element>
  static void multiply(float* sums, MatrixDescriptor a, MatrixDescriptor b, Element);
};

inline void wgmma_fence() {}
inline void wgmma_wait() {}
inline void pin_register(float&) {}

#endif

}  // namespace devmath
