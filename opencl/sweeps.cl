/* What the sweeps of `compactla.lines.relaxation` do beside solving along lines. Vectors are ordinary arrays (block
 * rows, b, right-hand sides), each given by its first element and the distances of these: dimension 0 of the range
 * counts rows, dimension 1 shares out the right-hand sides.
 */
#include "lane.h"

#ifndef PRODUCT
#define PRODUCT 0 /* 1: `residual` is a product */
#endif
#define EACH_COLUMN(n) for (long h = get_global_id(1); h < (n); h += get_global_size(1))

/* y <- rhs - A x, or, for a PRODUCT, A x for a matrix of b x b blocks in BSR form; x has the block rows that its columns
 * count
 */
__kernel void residual(long rows, long b, long nrhs, __global const long *indptr, __global const int *indices,
                       __global const CLA_REAL *data, CLA_VIEW(const CLA_REAL *x, x), CLA_VIEW(const CLA_REAL *rhs, r),
                       CLA_VIEW(CLA_REAL *y, y))
{
    const long row = get_global_id(0), i = row / b, p = row % b;
    if (row >= rows) return;
    EACH_COLUMN(nrhs)
    {
        cla_lane total = cla_lane_real(0);
        if (!PRODUCT) total = cla_lane_load_apart(rhs, r0 + i * rps + p * rrs + h * rcs, 1);
        for (long k = indptr[i]; k < indptr[i + 1]; k++)
            for (long q = 0; q < b; q++) {
                const cla_lane a = cla_lane_load_apart(data, ((k * b + p) * b + q) * CLA_PARTS, 1);
                const cla_lane c = cla_lane_load_apart(x, x0 + indices[k] * xps + q * xrs + h * xcs, 1);
                total = PRODUCT ? cla_lane_fma(a, c, total) : cla_lane_fnma(a, c, total);
            }
        cla_lane_store_apart(y, y0 + i * yps + p * yrs + h * ycs, 1, total);
    }
}

/* x <- (1 - damping) x + damping z */
__kernel void damp(long rows, long b, long nrhs, CLA_REAL damping, CLA_VIEW(const CLA_REAL *z, z),
                   CLA_VIEW(CLA_REAL *x, x))
{
    const long row = get_global_id(0), i = row / b, p = row % b;
    if (row >= rows) return;
    EACH_COLUMN(nrhs)
    {
        const long at = x0 + i * xps + p * xrs + h * xcs;
        const cla_lane old = cla_lane_load_apart(x, at, 1);
        const cla_lane next = cla_lane_load_apart(z, z0 + i * zps + p * zrs + h * zcs, 1);
        cla_lane_store_apart(x, at, 1, cla_lane_fma(cla_lane_real(damping), next - old, old));
    }
}

/* block row i of y <- block row order[i] of x, or, for `back`, block row order[i] of y <- block row i of x */
__kernel void permute(long rows, long b, long nrhs, long back, __global const long *order,
                      CLA_VIEW(const CLA_REAL *x, x), CLA_VIEW(CLA_REAL *y, y))
{
    const long row = get_global_id(0), i = row / b, p = row % b;
    if (row >= rows) return;
    const long from = back ? i : order[i], to = back ? order[i] : i;
    EACH_COLUMN(nrhs)
    cla_lane_store_apart(y, y0 + to * yps + p * yrs + h * ycs, 1,
                     cla_lane_load_apart(x, x0 + from * xps + p * xrs + h * xcs, 1));
}
