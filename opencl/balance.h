/* Matrices that are permuted and scaled before their eigenvalues are found, as by LAPACK's gebal, and vectors that are
 * brought back, as by gebak.
 */
#ifndef CLA_BALANCE_H
#define CLA_BALANCE_H

#include "householder.h"
#include "laswp.h"

#define CLA_BALANCE_FACTOR ldexp((CLA_REAL)1, sizeof(CLA_REAL) == 8 ? 300 : 24) /* the largest of a row */
#define CLA_BALANCE_PASSES 30

CLA_INLINE void cla_balance_add(cla_lane x, CLA_REAL *sums)
{
    sums[0] += cla_lane_abs1(x);
    sums[1] = cla_add_square(x, sums[1]);
}

/* The 2-norm, within a factor of 2^10 where squares overflow or underflow. */
CLA_INLINE CLA_REAL cla_balance_norm(const CLA_REAL *sums)
{
    return fmin(fmax(sqrt(sums[1]), sums[0] * (CLA_REAL)(1 / 1024.0)), sums[0]);
}

/* Balance A, as LAPACK's gebal: rows and columns that hold an eigenvalue go to the ends, others are scaled. F(i) is the
 * place that i was swapped with, or for lo to hi a factor. */
#define CLA_BALANCE_F(i) V.p[(i) * V.rs]
CLA_INLINE void cla_balance(int n, cla_matrix A, cla_matrix V, int *from, int *to)
{
    int lo = 0, hi = n - 1;
    for (int end = 1; end >= 0; end--) {
        for (int again = 1; again && lo < hi;) {
            again = 0;
            for (int r = hi; r >= lo && !again; r--) {
                CLA_REAL sum = 0;
                for (int c = lo; c <= hi; c++)
                    if (c != r) sum += cla_lane_abs1(end ? cla_get(A, r, c) : cla_get(A, c, r));
                if (sum != 0) continue;
                const int last = end ? hi-- : lo++;
                cla_swap_rows(r, last, n, A);
                cla_swap_rows(r, last, n, cla_transposed(A));
                CLA_BALANCE_F(last) = r;
                again = 1;
            }
        }
    }
    for (int i = lo; i <= hi; i++) CLA_BALANCE_F(i) = 1;
    for (int pass = 0, again = 1; again && pass < CLA_BALANCE_PASSES; pass++) {
        again = 0;
        for (int i = lo; i <= hi; i++) {
            CLA_REAL columns[2] = {0, 0}, rows[2] = {0, 0}; /* sums of sizes, and of squares */
            for (int j = lo; j <= hi; j++) {
                cla_balance_add(cla_get(A, j, i), columns);
                cla_balance_add(cla_get(A, i, j), rows);
            }
            const CLA_REAL column = cla_balance_norm(columns), row = cla_balance_norm(rows);
            if (!(column > 0 && row > 0)) continue;
            const CLA_REAL most = CLA_BALANCE_FACTOR, former = CLA_BALANCE_F(i);
            const CLA_REAL wanted = sqrt(row / column) * (CLA_REAL)1.4142135623730951;
            const CLA_REAL held = fmax(fmin(wanted, most / former), 1 / most / former);
            const CLA_REAL factor = ldexp((CLA_REAL)1, ilogb(held)), inverse = 1 / factor;
            if (!(column * factor + row * inverse < (column + row) * (CLA_REAL)0.95)) continue;
            again = 1;
            CLA_BALANCE_F(i) = former * factor;
            for (int j = 0; j < n; j++) cla_set(A, j, i, cla_get(A, j, i) * factor);
            for (int j = 0; j < n; j++) cla_set(A, i, j, cla_get(A, i, j) * inverse);
        }
    }
    *from = lo;
    *to = hi;
}

/* Z <- vectors of the matrix before it was balanced. */
CLA_INLINE void cla_unbalance(int n, cla_matrix Z, cla_matrix V, int lo, int hi)
{
    for (int i = lo; i <= hi; i++)
        for (int j = 0; j < n; j++) cla_set(Z, i, j, cla_get(Z, i, j) * CLA_BALANCE_F(i));
    for (int i = lo - 1; i >= 0; i--) cla_swap_rows(i, (int)CLA_BALANCE_F(i), n, Z);
    for (int i = hi + 1; i < n; i++) cla_swap_rows(i, (int)CLA_BALANCE_F(i), n, Z);
}

#endif
