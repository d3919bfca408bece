/* syr and her: the lower triangle of A <- alpha x x^T + A, or of alpha x x^H + A for real alpha, for one lane (pack
 * level) and for a batch (define SYR_BATCH or HER_BATCH).
 *
 * x is n x 1, A n x n, and its lower triangle all that is stored; imaginary parts on a Hermitian diagonal count as 0 and
 * become 0. An upper triangle is the lower one of the transposed A, where x is conjugated if that is Hermitian.
 * Batch: matrix q of A begins at A[a0 + (q / V) * aps + q % V], and alpha, a matrix of 1 x 1 for each, likewise; one
 * work-item updates one lane of A.
 */
#ifndef CLA_SYR_CL
#define CLA_SYR_CL

#include "lane.h"

/* a + multiple x, or for a Hermitian matrix what that is with conj(x); real if it is `diagonal` of such. */
CLA_INLINE cla_lane cla_rank_one(int hermitian, int diagonal, cla_lane multiple, cla_lane x, cla_lane a)
{
    const cla_lane sum = cla_lane_fma(multiple, hermitian ? cla_lane_conj(x) : x, a);
    return hermitian && diagonal ? cla_lane_real(cla_lane_re(sum)) : sum;
}

/* alpha = 0 reads nothing. */
CLA_INLINE void cla_update_half(int hermitian, int n, cla_lane alpha, cla_matrix x, cla_matrix A)
{
    if (cla_lane_is_zero(alpha)) return;
    for (int i = 0; i < n; i++) {
        const cla_lane multiple = cla_lane_scale(alpha, cla_get(x, i, 0));
        for (int j = 0; j <= i; j++)
            cla_set(A, i, j, cla_rank_one(hermitian, i == j, multiple, cla_get(x, j, 0), cla_get(A, i, j)));
    }
}

CLA_INLINE void cla_syr(int n, cla_lane alpha, cla_matrix x, cla_matrix A) { cla_update_half(0, n, alpha, x, A); }

CLA_INLINE void cla_her(int n, CLA_REAL alpha, cla_matrix x, cla_matrix A)
{
    cla_update_half(CLA_COMPLEX, n, cla_lane_real(alpha), x, A);
}

#if defined(HER_BATCH) || defined(HER_ITEM)
#define HERMITIAN CLA_COMPLEX
#define KERNEL(shape) her_##shape
#elif defined(SYR_BATCH) || defined(SYR_ITEM)
#define HERMITIAN 0
#define KERNEL(shape) syr_##shape
#endif

/* Of a Hermitian matrix alpha is real, whatever its imaginary part. */
#define CLA_SYR_ALPHA(a) (HERMITIAN ? cla_lane_real(cla_lane_re(a)) : (a))

#if defined(SYR_BATCH) || defined(HER_BATCH)
/* alphaconj and aconj are 0 */
__kernel void KERNEL(batch)(long lanes, long nm, long n, CLA_OPERAND(const CLA_REAL *restrict alpha, alpha),
                            CLA_OPERAND(const CLA_REAL *restrict x, x), CLA_OPERAND(CLA_REAL *restrict A, a))
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const cla_lane factor = CLA_SYR_ALPHA(cla_lane_load(alpha, alpha0 + cla_lane_place(q, alphaps)));
    cla_update_half(HERMITIAN, n, factor, CLA_MATRIX(x, x, q, xconj), CLA_MATRIX(A, a, q, 0));
}
#endif

/* Batches whose sizes and strides are known when this is compiled: define N and, in numbers, XRS, ARS, ACS; XCONJ, 1 to
 * conjugate x. Tunables:
 *
 * SYR_ITEM   one work-item a matrix: x in its registers, the rows of A pass by.
 * HER_ITEM
 *   GROUP    work-items of a work-group
 */
#if defined(SYR_ITEM) || defined(HER_ITEM)
#include "known.h"
#include "unroll.h"

__kernel CLA_GROUP_OF(GROUP) void KERNEL(item)(long lanes, long nm,
                                               __global const CLA_REAL *restrict alpha, long alpha0, long alphaps,
                                               __global const CLA_REAL *restrict x, long x0, long xps,
                                               __global CLA_REAL *restrict A, long a0, long aps)
{
    const long q = get_global_id(0);
    if (q >= lanes) return;
    const cla_lane factor = CLA_SYR_ALPHA(cla_lane_load(alpha, alpha0 + cla_lane_place(q, alphaps)));
    if (cla_lane_is_zero(factor)) return;
    x += x0 + cla_lane_place(q, xps);
    A += a0 + cla_lane_place(q, aps);
    cla_lane all[N];
    CLA_UNROLL for (int i = 0; i < N; i++) all[i] = cla_lane_load_as(XCONJ, x, i * XRS);
    CLA_UNROLL for (int i = 0; i < N; i++) {
        const cla_lane multiple = cla_lane_scale(factor, all[i]);
        CLA_UNROLL for (int j = 0; j <= i; j++) {
            const cla_lane a = cla_lane_load(A, i * ARS + j * ACS);
            cla_lane_store(A, i * ARS + j * ACS, cla_rank_one(HERMITIAN, i == j, multiple, all[j], a));
        }
    }
}
#endif

#endif
