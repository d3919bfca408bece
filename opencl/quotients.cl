/* Quotients of packs by a number.
 *
 * Dimension 0 of the range counts lanes, q = pack * V + lane, and dimension 1 shares out the elements of a matrix.
 */
#include "lane.h"

#pragma OPENCL FP_CONTRACT OFF

/* x / d, rounded to the nearest number where there is double precision. Compilers make a quotient of singles of one of
 * doubles that is rounded to single, and NVIDIA's is not that exact: here it is a product with 1 / d that is mended. */
CLA_INLINE CLA_REAL quotient_of_reals(CLA_REAL x, CLA_REAL d)
{
#ifdef cl_khr_fp64
    if (sizeof(CLA_REAL) == sizeof(float)) {
        const double r = 1 / (double)d, q = x * r, rest = fma(CLA_MINUS(q), (double)d, (double)x);
        return (CLA_REAL)(rest != 0 && isfinite(rest) ? fma(rest, r, q) : q);
    }
#endif
    return x / d;
}

/* The same, of complex numbers by Smith's method, as NumPy does. */
CLA_INLINE cla_lane quotient(cla_lane x, CLA_REAL re, CLA_REAL im)
{
#if CLA_COMPLEX
    if (re == 0 && im == 0) return cla_lane_of(x.x / fabs(re), x.y / fabs(re));
    if (fabs(re) >= fabs(im)) {
        const CLA_REAL ratio = quotient_of_reals(im, re), scale = quotient_of_reals(1, re + im * ratio);
        return cla_lane_of((x.x + x.y * ratio) * scale, (x.y - x.x * ratio) * scale);
    }
    const CLA_REAL ratio = quotient_of_reals(re, im), scale = quotient_of_reals(1, im + re * ratio);
    return cla_lane_of((x.x * ratio + x.y) * scale, (x.y * ratio - x.x) * scale);
#else
    return quotient_of_reals(x, re);
#endif
}

/* Z[q] <- A[q] / (re + im i), which may be the same; lanes from nm on are copied */
__kernel void quotients(long lanes, long nm, long m, long n, CLA_REAL re, CLA_REAL im, CLA_VIEW(const CLA_REAL *A, a),
                        CLA_VIEW(CLA_REAL *Z, z))
{
    const long q = get_global_id(0), pack = q / CLA_VLEN, lane = q % CLA_VLEN;
    if (q >= lanes) return;
    for (long e = get_global_id(1); e < m * n; e += get_global_size(1)) {
        const cla_lane x = cla_lane_load(A, a0 + pack * aps + lane + e / n * ars + e % n * acs);
        cla_lane_store(Z, z0 + pack * zps + lane + e / n * zrs + e % n * zcs, q < nm ? quotient(x, re, im) : x);
    }
}
