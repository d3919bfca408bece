/* getrs: B <- inv(op(A)) B with A = L\U and the swaps that getrf left, for one lane (pack level) and for a batch (define
 * GETRS_BATCH).
 *
 * A is n x n, B n x r. The conjugate of A is a flag of the matrix. Number k of `ipiv`, of ints that are CLA_VLEN apart,
 * is the row that was swapped with row k.
 * Batch: as of getrsnp.cl, whose kernels for known sizes, in other names, are those of getrs too: getrs_item and
 * getrs_team, where a work-item has N ints more, or a matrix in local memory.
 */
#ifndef CLA_GETRS_CL
#define CLA_GETRS_CL

#if defined(GETRS_ITEM) || defined(GETRS_TEAM)
#define CLA_SWAPS 1
#define getrsnp_item getrs_item
#define getrsnp_team getrs_team
#ifdef GETRS_ITEM
#define GETRSNP_ITEM
#else
#define GETRSNP_TEAM
#endif
#endif

#include "laswp.h"

#include "getrsnp.cl"

/* trans is 0, or 1 for a transposed A. */
CLA_INLINE void cla_getrs(int n, int r, int trans, cla_matrix A, __global const int *ipiv, cla_matrix B)
{
    if (!trans) cla_laswp(n, r, ipiv, 0, B);
    cla_getrsnp(n, r, trans, A, B);
    if (trans) cla_laswp(n, r, ipiv, 1, B);
}

#ifdef GETRS_BATCH
/* trans is 0, 1 or 2, which is 1 with aconj; bconj is 0: B is as it is */
__kernel void getrs_batch(long lanes, long nm, long n, long r, long trans, CLA_OPERAND(const CLA_REAL *restrict A, a),
                          CLA_OPERAND(const int *restrict ipiv, ipiv), CLA_OPERAND(CLA_REAL *restrict B, b))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    cla_getrs(n, r, trans != 0, CLA_MATRIX(A, a, q, aconj), ipiv + ipiv0 + cla_lane_place(q, ipivps),
              CLA_MATRIX(B, b, q, 0));
}
#endif

#endif
