/* getri: A <- inv(A) with A = L\U and the swaps that getrf left, for one lane (pack level) and for a batch (define
 * GETRI_BATCH).
 *
 * A is n x n. Number k of `ipiv`, of ints that are CLA_VLEN apart, is the row that was swapped with row k.
 * Batch: as of getrinp.cl, whose kernels for known sizes, in other names, are those of getri too: getri_item and
 * getri_team, where a work-item has N ints more, or a matrix in local memory.
 */
#ifndef CLA_GETRI_CL
#define CLA_GETRI_CL

#if defined(GETRI_ITEM) || defined(GETRI_TEAM)
#define CLA_SWAPS 1
#define getrinp_item getri_item
#define getrinp_team getri_team
#ifdef GETRI_ITEM
#define GETRINP_ITEM
#else
#define GETRINP_TEAM
#endif
#endif

#include "laswp.h"

#include "getrinp.cl"

/* Returns 0 or 1 + the index of the first zero on the diagonal of U. */
CLA_INLINE int cla_getri(int n, cla_matrix A, __global const int *ipiv)
{
    const int info = cla_getrinp(n, A);
    cla_laswp(n, n, ipiv, 1, cla_transposed(A));
    return info;
}

#ifdef GETRI_BATCH
/* info[q] for the first nm lanes, those that hold a matrix; aconj is 0: A is as it is */
__kernel void getri_batch(long lanes, long nm, long n, CLA_OPERAND(CLA_REAL *A, a),
                          CLA_OPERAND(const int *restrict ipiv, ipiv), __global int *info)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const cla_matrix a = CLA_MATRIX(A, a, q, 0);
    const int first = cla_getri(n, a, ipiv + ipiv0 + cla_lane_place(q, ipivps));
    if (q < nm) info[q] = first;
}
#endif

#endif
