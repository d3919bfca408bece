/* Rows of band matrices in ordinary arrays. KL and KU are the diagonals below and above the main one, and
 *
 * SOURCE        what matrices are: 0 diagonals as SciPy orders them; 1 the lower, main and upper diagonal, which with 2
 *               are closed to a ring and folded: unknowns are in the order 0, n - 1, 1, n - 2, ...; 3 Hermitian ones of
 *               which the lower diagonals are given, 4 the upper ones
 */
#include "gbtrf.cl"
#include "unroll.h"

#ifndef KL
#define KL 1
#define KU 1
#define SOURCE 1
#endif

#define WIDTH (KL + KU + 1)
#define APART (SOURCE == 1 || SOURCE == 2)  /* diagonals are arrays of their own */
#define NUMBERS (APART ? 3 : WIDTH)          /* of a row, that are read */

/* Element i of vector j of system q is at p[q / inner * far + q % inner * step + i * rs + j * cs]. */
typedef struct {
    __global CLA_REAL *p;
    long far, step, rs, cs;
} ordinary;

#define ORDINARY(a) __global CLA_REAL *a, long a##0, long a##_far, long a##_step, long a##_rs, long a##_cs
#define AS_ORDINARY(a) { a + a##0, a##_far, a##_step, a##_rs, a##_cs }

/* With FIND(i, a), which notes as number i where systems begin in an array: in those of matrices, and of right-hand sides
 * and solutions. */
#define FIND_MATRICES FIND(0, A) FIND(1, B) FIND(2, C)
#define FIND_VECTORS FIND(3, R) FIND(4, X)

CLA_INLINE long system_place(ordinary a, long q, long inner) { return q / inner * a.far + q % inner * a.step; }

/* Where number s of row k is on its diagonal; -1 if it is outside of the matrix. */
CLA_INLINE int band_place(int s, int k, int n)
{
    if (k < 0 || k >= n) return -1;
#if SOURCE == 1
    return s == 0 ? k - 1 : s == 2 && k == n - 1 ? -1 : k;
#elif SOURCE == 2
    const int i = cla_folded(k, n);
    return s ? i : i ? i - 1 : n - 1;
#else
    const int j = k + s - KL, mirrored = SOURCE == 3 ? s > KL : SOURCE == 4 && s < KL;
    return j < 0 || j >= n ? -1 : mirrored ? k : j;
#endif
}

/* How far that is from k; of no ring. */
CLA_INLINE int band_shift(int s)
{
#if SOURCE == 1
    return s ? 0 : -1;
#else
    const int mirrored = SOURCE == 3 ? s > KL : SOURCE == 4 && s < KL;
    return mirrored ? 0 : s - KL;
#endif
}

/* On which diagonal it is. */
CLA_INLINE int band_diagonal(int s)
{
    const int distance = s < KL ? KL - s : s - KL;
    return SOURCE == 0 ? WIDTH - 1 - s : SOURCE == 3 ? distance : SOURCE == 4 ? KU - distance : 0;
}

/* Row k of the matrix from column k - KL to k + KU, from its numbers. */
CLA_INLINE void band_row(const cla_lane *number, int k, int n, cla_lane *row)
{
#if SOURCE == 2
    const int odd = k & 1;
    const cla_lane zero = cla_lane_real(0);
    const cla_lane before = cla_lane_select(odd, number[2], number[0]);
    const cla_lane after = cla_lane_select(odd, number[0], number[2]);
    row[0] = k >= 2 ? before : zero;
    row[1] = k == 1 ? before : zero;
    row[2] = number[1];
    row[3] = k == 0 ? before : zero;
    row[4] = k < n - 2 ? after : zero;
    if (k == n - 2) row[3] = row[3] + after;
    if (k == n - 1) row[1] = row[1] + after;
#else
    CLA_UNROLL for (int t = 0; t < WIDTH; t++) {
        const int mirrored = SOURCE == 3 ? t > KL : SOURCE == 4 && t < KL;
        row[t] = mirrored ? cla_lane_conj(number[t]) : number[t];
    }
    if (SOURCE >= 3) row[KL] = cla_lane_real(cla_lane_re(number[KL]));
#endif
}

/* The inverse of a power of 2 that is near to a size, by its exponent: 0 or NaN make no other numbers but these. */
CLA_INLINE CLA_REAL inverse_power(CLA_REAL size)
{
#ifdef cl_khr_fp64
    if (sizeof(CLA_REAL) == 8) {
        const long exponent = as_long((double)size) & 0x7ff0000000000000;
        return as_double(0x7fe0000000000000 - min(exponent, (long)0x7fd0000000000000));
    }
#endif
    return as_float((uint)(0x7f000000 - min(as_int((float)size) & 0x7f800000, 0x7e800000)));
}
