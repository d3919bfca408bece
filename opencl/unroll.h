/* Loops that are written out, so that every index of a private array is a number when the compiler first sees it.
 *
 * Compilers keep such arrays in registers. NVIDIA's leaves one whose elements are used under a run-time condition in
 * memory if it has to unroll the loop itself: several times slower, and seen only as a stack frame in the build log.
 *
 * CLA_UNROLL1(n, F) writes F(0) F(1) .. F(n - 1), n at most 32. The others nest in it, since a macro is not expanded
 * within itself: CLA_UNROLL2(n, F, a) writes F(a, 0) .., CLA_UNROLL3(n, F, a, b) F(a, b, 0) .., CLA_UNROLL4 likewise.
 * CLA_UNROLL, before a for loop, asks the compiler to do it, which takes it a fraction of the time: enough where no
 * condition is in the way, and within steps that are written out, where bounds are numbers. CLA_UNROLL_SOME asks for
 * four turns at a time, CLA_ROLLED for one. Steps of many lines are better written out by inclusion: next_step.h.
 */
#ifndef CLA_UNROLL_H
#define CLA_UNROLL_H

#include "lane.h"

#define CLA_UNROLL _Pragma("unroll")
#define CLA_UNROLL_SOME _Pragma("unroll 4")
#define CLA_ROLLED _Pragma("unroll 1")

/* What was read of memory before counts for nothing behind this, in the eyes of NVIDIA's compiler, which takes long to
 * compare thousands of loads with each other. No instruction comes of it. Nor does one of CLA_FOUND: behind it a pointer is
 * what it is, and not found anew in each branch that follows it. */
#if defined(__CUDACC__) || defined(__NV_CL_C_VERSION)
#define CLA_FORGET asm volatile("" ::: "memory");
#define CLA_FOUND(p) asm volatile("" : "+l"(p));
#else
#define CLA_FORGET
#define CLA_FOUND(p)
#endif

#define CLA_GROUP_OF(n) __attribute__((reqd_work_group_size(n, 1, 1)))

/* Which column of a matrix is the j-th of work-item c, where the TEAM of a matrix have columns that are TEAM apart, and
 * whether it has one, of n. */
#define CLA_COLUMN(j) ((j) * TEAM + c)
#define CLA_COLUMN_OF(j, n) min(CLA_COLUMN(j), (n) - 1) /* of n, or the last: of what is a place, code is faster */
#define CLA_HAS_COLUMN(j, n) ((n) == COLUMNS * TEAM || CLA_COLUMN(j) < (n))

/* q % V for the first lane q of a work-group, a multiple of LANES.
 *
 * Works around a bug of PoCL 5.0: where q / V and q % V stand side by side, LLVM makes one instruction of both. PoCL
 * records that all work-items of a group share its value, and keeps that record when a later pass removes the
 * instruction. Another value at its address then counts as shared, and all work-items get that of the last one. */
#define CLA_GROUP_LANE(q) ((q) / LANES % (CLA_VLEN / LANES) * LANES)
/* a % b beside a / b, for the same reason, where all work-items of a work-group have the same numbers, not negative */
#define CLA_REMAINDER(a, b) ((2 * (a) + 1) % (2 * (b)) / 2)

#define CLA_UNROLL1(n, F) CLA_PASTE(CLA_UNROLL1_, n)(F)
#define CLA_UNROLL1_0(F)
#define CLA_UNROLL1_1(F) CLA_UNROLL1_0(F) F(0)
#define CLA_UNROLL1_2(F) CLA_UNROLL1_1(F) F(1)
#define CLA_UNROLL1_3(F) CLA_UNROLL1_2(F) F(2)
#define CLA_UNROLL1_4(F) CLA_UNROLL1_3(F) F(3)
#define CLA_UNROLL1_5(F) CLA_UNROLL1_4(F) F(4)
#define CLA_UNROLL1_6(F) CLA_UNROLL1_5(F) F(5)
#define CLA_UNROLL1_7(F) CLA_UNROLL1_6(F) F(6)
#define CLA_UNROLL1_8(F) CLA_UNROLL1_7(F) F(7)
#define CLA_UNROLL1_9(F) CLA_UNROLL1_8(F) F(8)
#define CLA_UNROLL1_10(F) CLA_UNROLL1_9(F) F(9)
#define CLA_UNROLL1_11(F) CLA_UNROLL1_10(F) F(10)
#define CLA_UNROLL1_12(F) CLA_UNROLL1_11(F) F(11)
#define CLA_UNROLL1_13(F) CLA_UNROLL1_12(F) F(12)
#define CLA_UNROLL1_14(F) CLA_UNROLL1_13(F) F(13)
#define CLA_UNROLL1_15(F) CLA_UNROLL1_14(F) F(14)
#define CLA_UNROLL1_16(F) CLA_UNROLL1_15(F) F(15)
#define CLA_UNROLL1_17(F) CLA_UNROLL1_16(F) F(16)
#define CLA_UNROLL1_18(F) CLA_UNROLL1_17(F) F(17)
#define CLA_UNROLL1_19(F) CLA_UNROLL1_18(F) F(18)
#define CLA_UNROLL1_20(F) CLA_UNROLL1_19(F) F(19)
#define CLA_UNROLL1_21(F) CLA_UNROLL1_20(F) F(20)
#define CLA_UNROLL1_22(F) CLA_UNROLL1_21(F) F(21)
#define CLA_UNROLL1_23(F) CLA_UNROLL1_22(F) F(22)
#define CLA_UNROLL1_24(F) CLA_UNROLL1_23(F) F(23)
#define CLA_UNROLL1_25(F) CLA_UNROLL1_24(F) F(24)
#define CLA_UNROLL1_26(F) CLA_UNROLL1_25(F) F(25)
#define CLA_UNROLL1_27(F) CLA_UNROLL1_26(F) F(26)
#define CLA_UNROLL1_28(F) CLA_UNROLL1_27(F) F(27)
#define CLA_UNROLL1_29(F) CLA_UNROLL1_28(F) F(28)
#define CLA_UNROLL1_30(F) CLA_UNROLL1_29(F) F(29)
#define CLA_UNROLL1_31(F) CLA_UNROLL1_30(F) F(30)
#define CLA_UNROLL1_32(F) CLA_UNROLL1_31(F) F(31)

#define CLA_UNROLL2(n, F, a) CLA_PASTE(CLA_UNROLL2_, n)(F, a)
#define CLA_UNROLL2_0(F, a)
#define CLA_UNROLL2_1(F, a) CLA_UNROLL2_0(F, a) F(a, 0)
#define CLA_UNROLL2_2(F, a) CLA_UNROLL2_1(F, a) F(a, 1)
#define CLA_UNROLL2_3(F, a) CLA_UNROLL2_2(F, a) F(a, 2)
#define CLA_UNROLL2_4(F, a) CLA_UNROLL2_3(F, a) F(a, 3)
#define CLA_UNROLL2_5(F, a) CLA_UNROLL2_4(F, a) F(a, 4)
#define CLA_UNROLL2_6(F, a) CLA_UNROLL2_5(F, a) F(a, 5)
#define CLA_UNROLL2_7(F, a) CLA_UNROLL2_6(F, a) F(a, 6)
#define CLA_UNROLL2_8(F, a) CLA_UNROLL2_7(F, a) F(a, 7)
#define CLA_UNROLL2_9(F, a) CLA_UNROLL2_8(F, a) F(a, 8)
#define CLA_UNROLL2_10(F, a) CLA_UNROLL2_9(F, a) F(a, 9)
#define CLA_UNROLL2_11(F, a) CLA_UNROLL2_10(F, a) F(a, 10)
#define CLA_UNROLL2_12(F, a) CLA_UNROLL2_11(F, a) F(a, 11)
#define CLA_UNROLL2_13(F, a) CLA_UNROLL2_12(F, a) F(a, 12)
#define CLA_UNROLL2_14(F, a) CLA_UNROLL2_13(F, a) F(a, 13)
#define CLA_UNROLL2_15(F, a) CLA_UNROLL2_14(F, a) F(a, 14)
#define CLA_UNROLL2_16(F, a) CLA_UNROLL2_15(F, a) F(a, 15)
#define CLA_UNROLL2_17(F, a) CLA_UNROLL2_16(F, a) F(a, 16)
#define CLA_UNROLL2_18(F, a) CLA_UNROLL2_17(F, a) F(a, 17)
#define CLA_UNROLL2_19(F, a) CLA_UNROLL2_18(F, a) F(a, 18)
#define CLA_UNROLL2_20(F, a) CLA_UNROLL2_19(F, a) F(a, 19)
#define CLA_UNROLL2_21(F, a) CLA_UNROLL2_20(F, a) F(a, 20)
#define CLA_UNROLL2_22(F, a) CLA_UNROLL2_21(F, a) F(a, 21)
#define CLA_UNROLL2_23(F, a) CLA_UNROLL2_22(F, a) F(a, 22)
#define CLA_UNROLL2_24(F, a) CLA_UNROLL2_23(F, a) F(a, 23)
#define CLA_UNROLL2_25(F, a) CLA_UNROLL2_24(F, a) F(a, 24)
#define CLA_UNROLL2_26(F, a) CLA_UNROLL2_25(F, a) F(a, 25)
#define CLA_UNROLL2_27(F, a) CLA_UNROLL2_26(F, a) F(a, 26)
#define CLA_UNROLL2_28(F, a) CLA_UNROLL2_27(F, a) F(a, 27)
#define CLA_UNROLL2_29(F, a) CLA_UNROLL2_28(F, a) F(a, 28)
#define CLA_UNROLL2_30(F, a) CLA_UNROLL2_29(F, a) F(a, 29)
#define CLA_UNROLL2_31(F, a) CLA_UNROLL2_30(F, a) F(a, 30)
#define CLA_UNROLL2_32(F, a) CLA_UNROLL2_31(F, a) F(a, 31)

#define CLA_UNROLL3(n, F, a, b) CLA_PASTE(CLA_UNROLL3_, n)(F, a, b)
#define CLA_UNROLL3_0(F, a, b)
#define CLA_UNROLL3_1(F, a, b) CLA_UNROLL3_0(F, a, b) F(a, b, 0)
#define CLA_UNROLL3_2(F, a, b) CLA_UNROLL3_1(F, a, b) F(a, b, 1)
#define CLA_UNROLL3_3(F, a, b) CLA_UNROLL3_2(F, a, b) F(a, b, 2)
#define CLA_UNROLL3_4(F, a, b) CLA_UNROLL3_3(F, a, b) F(a, b, 3)
#define CLA_UNROLL3_5(F, a, b) CLA_UNROLL3_4(F, a, b) F(a, b, 4)
#define CLA_UNROLL3_6(F, a, b) CLA_UNROLL3_5(F, a, b) F(a, b, 5)
#define CLA_UNROLL3_7(F, a, b) CLA_UNROLL3_6(F, a, b) F(a, b, 6)
#define CLA_UNROLL3_8(F, a, b) CLA_UNROLL3_7(F, a, b) F(a, b, 7)
#define CLA_UNROLL3_9(F, a, b) CLA_UNROLL3_8(F, a, b) F(a, b, 8)
#define CLA_UNROLL3_10(F, a, b) CLA_UNROLL3_9(F, a, b) F(a, b, 9)
#define CLA_UNROLL3_11(F, a, b) CLA_UNROLL3_10(F, a, b) F(a, b, 10)
#define CLA_UNROLL3_12(F, a, b) CLA_UNROLL3_11(F, a, b) F(a, b, 11)
#define CLA_UNROLL3_13(F, a, b) CLA_UNROLL3_12(F, a, b) F(a, b, 12)
#define CLA_UNROLL3_14(F, a, b) CLA_UNROLL3_13(F, a, b) F(a, b, 13)
#define CLA_UNROLL3_15(F, a, b) CLA_UNROLL3_14(F, a, b) F(a, b, 14)
#define CLA_UNROLL3_16(F, a, b) CLA_UNROLL3_15(F, a, b) F(a, b, 15)
#define CLA_UNROLL3_17(F, a, b) CLA_UNROLL3_16(F, a, b) F(a, b, 16)
#define CLA_UNROLL3_18(F, a, b) CLA_UNROLL3_17(F, a, b) F(a, b, 17)
#define CLA_UNROLL3_19(F, a, b) CLA_UNROLL3_18(F, a, b) F(a, b, 18)
#define CLA_UNROLL3_20(F, a, b) CLA_UNROLL3_19(F, a, b) F(a, b, 19)
#define CLA_UNROLL3_21(F, a, b) CLA_UNROLL3_20(F, a, b) F(a, b, 20)
#define CLA_UNROLL3_22(F, a, b) CLA_UNROLL3_21(F, a, b) F(a, b, 21)
#define CLA_UNROLL3_23(F, a, b) CLA_UNROLL3_22(F, a, b) F(a, b, 22)
#define CLA_UNROLL3_24(F, a, b) CLA_UNROLL3_23(F, a, b) F(a, b, 23)
#define CLA_UNROLL3_25(F, a, b) CLA_UNROLL3_24(F, a, b) F(a, b, 24)
#define CLA_UNROLL3_26(F, a, b) CLA_UNROLL3_25(F, a, b) F(a, b, 25)
#define CLA_UNROLL3_27(F, a, b) CLA_UNROLL3_26(F, a, b) F(a, b, 26)
#define CLA_UNROLL3_28(F, a, b) CLA_UNROLL3_27(F, a, b) F(a, b, 27)
#define CLA_UNROLL3_29(F, a, b) CLA_UNROLL3_28(F, a, b) F(a, b, 28)
#define CLA_UNROLL3_30(F, a, b) CLA_UNROLL3_29(F, a, b) F(a, b, 29)
#define CLA_UNROLL3_31(F, a, b) CLA_UNROLL3_30(F, a, b) F(a, b, 30)
#define CLA_UNROLL3_32(F, a, b) CLA_UNROLL3_31(F, a, b) F(a, b, 31)

#define CLA_UNROLL4(n, F, a, b, c) CLA_PASTE(CLA_UNROLL4_, n)(F, a, b, c)
#define CLA_UNROLL4_0(F, a, b, c)
#define CLA_UNROLL4_1(F, a, b, c) CLA_UNROLL4_0(F, a, b, c) F(a, b, c, 0)
#define CLA_UNROLL4_2(F, a, b, c) CLA_UNROLL4_1(F, a, b, c) F(a, b, c, 1)
#define CLA_UNROLL4_3(F, a, b, c) CLA_UNROLL4_2(F, a, b, c) F(a, b, c, 2)
#define CLA_UNROLL4_4(F, a, b, c) CLA_UNROLL4_3(F, a, b, c) F(a, b, c, 3)
#define CLA_UNROLL4_5(F, a, b, c) CLA_UNROLL4_4(F, a, b, c) F(a, b, c, 4)
#define CLA_UNROLL4_6(F, a, b, c) CLA_UNROLL4_5(F, a, b, c) F(a, b, c, 5)
#define CLA_UNROLL4_7(F, a, b, c) CLA_UNROLL4_6(F, a, b, c) F(a, b, c, 6)
#define CLA_UNROLL4_8(F, a, b, c) CLA_UNROLL4_7(F, a, b, c) F(a, b, c, 7)
#define CLA_UNROLL4_9(F, a, b, c) CLA_UNROLL4_8(F, a, b, c) F(a, b, c, 8)
#define CLA_UNROLL4_10(F, a, b, c) CLA_UNROLL4_9(F, a, b, c) F(a, b, c, 9)
#define CLA_UNROLL4_11(F, a, b, c) CLA_UNROLL4_10(F, a, b, c) F(a, b, c, 10)
#define CLA_UNROLL4_12(F, a, b, c) CLA_UNROLL4_11(F, a, b, c) F(a, b, c, 11)
#define CLA_UNROLL4_13(F, a, b, c) CLA_UNROLL4_12(F, a, b, c) F(a, b, c, 12)
#define CLA_UNROLL4_14(F, a, b, c) CLA_UNROLL4_13(F, a, b, c) F(a, b, c, 13)
#define CLA_UNROLL4_15(F, a, b, c) CLA_UNROLL4_14(F, a, b, c) F(a, b, c, 14)
#define CLA_UNROLL4_16(F, a, b, c) CLA_UNROLL4_15(F, a, b, c) F(a, b, c, 15)
#define CLA_UNROLL4_17(F, a, b, c) CLA_UNROLL4_16(F, a, b, c) F(a, b, c, 16)
#define CLA_UNROLL4_18(F, a, b, c) CLA_UNROLL4_17(F, a, b, c) F(a, b, c, 17)
#define CLA_UNROLL4_19(F, a, b, c) CLA_UNROLL4_18(F, a, b, c) F(a, b, c, 18)
#define CLA_UNROLL4_20(F, a, b, c) CLA_UNROLL4_19(F, a, b, c) F(a, b, c, 19)
#define CLA_UNROLL4_21(F, a, b, c) CLA_UNROLL4_20(F, a, b, c) F(a, b, c, 20)
#define CLA_UNROLL4_22(F, a, b, c) CLA_UNROLL4_21(F, a, b, c) F(a, b, c, 21)
#define CLA_UNROLL4_23(F, a, b, c) CLA_UNROLL4_22(F, a, b, c) F(a, b, c, 22)
#define CLA_UNROLL4_24(F, a, b, c) CLA_UNROLL4_23(F, a, b, c) F(a, b, c, 23)
#define CLA_UNROLL4_25(F, a, b, c) CLA_UNROLL4_24(F, a, b, c) F(a, b, c, 24)
#define CLA_UNROLL4_26(F, a, b, c) CLA_UNROLL4_25(F, a, b, c) F(a, b, c, 25)
#define CLA_UNROLL4_27(F, a, b, c) CLA_UNROLL4_26(F, a, b, c) F(a, b, c, 26)
#define CLA_UNROLL4_28(F, a, b, c) CLA_UNROLL4_27(F, a, b, c) F(a, b, c, 27)
#define CLA_UNROLL4_29(F, a, b, c) CLA_UNROLL4_28(F, a, b, c) F(a, b, c, 28)
#define CLA_UNROLL4_30(F, a, b, c) CLA_UNROLL4_29(F, a, b, c) F(a, b, c, 29)
#define CLA_UNROLL4_31(F, a, b, c) CLA_UNROLL4_30(F, a, b, c) F(a, b, c, 30)
#define CLA_UNROLL4_32(F, a, b, c) CLA_UNROLL4_31(F, a, b, c) F(a, b, c, 31)

#endif
