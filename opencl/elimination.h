/* Step k of an LU factorization, wherever the matrix is: in a tile, in the registers of a work-item, in memory.
 *
 * The macros write it out, for the reasons of unroll.h. A file that uses them says what its matrix is, by macros that
 * it drops again:
 *   AT(i, j), SET(i, j, x)   element (i, j); makes it x
 *   EACH_ROW(F, k, s)        F(k, s, i) for all rows i, or for those below row k
 *   EACH_COLUMN(F, k, s, i)  F(k, s, i, j) for all columns j, or for those right of column s
 * and has the reciprocal of the pivot, which is in row k and column s, as r. What is below it becomes column s of L,
 * and what is right of that loses its multiples of row k.
 */
#ifndef CLA_ELIMINATION_H
#define CLA_ELIMINATION_H

#include "unroll.h"

/* The reciprocal of pivot k; 1 for a zero pivot, whose column stays as it is. The first of these makes info 1 + k. */
CLA_INLINE cla_lane cla_pivot(cla_lane a, int k, int *info)
{
    if (cla_lane_is_zero(a) && *info == 0) *info = k + 1;
    return cla_lane_is_zero(a) ? cla_lane_real(1) : cla_lane_recip(a);
}

/* A pivot moved away from zero by `amount`: to the left if its real part is negative, else to the right. */
CLA_INLINE cla_lane cla_away_from_zero(cla_lane a, CLA_REAL amount)
{
    return a + cla_lane_real(cla_lane_re(a) < 0 ? CLA_MINUS(amount) : amount);
}

#define CLA_ELIMINATE(k, s) EACH_ROW(CLA_ELIMINATE_ROW, k, s)
#define CLA_ELIMINATE_ROW(k, s, i) \
    if (i > (k)) { \
        const cla_lane multiple = cla_lane_mul(AT(i, s), r); \
        SET(i, s, multiple) \
        EACH_COLUMN(CLA_ELIMINATE_AT, k, s, i) \
    }
#define CLA_ELIMINATE_AT(k, s, i, j) \
    if (j > (s)) { SET(i, j, cla_lane_fnma(multiple, AT(k, j), AT(i, j))) }

#endif
