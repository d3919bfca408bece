/* What a factorization of lines keeps of its pivots, and what it does about them. */
#ifndef CLA_WATCH_H
#define CLA_WATCH_H

#include "elimination.h"

#define CLA_WATCHED 5 /* numbers that are kept of a line */

/* The smallest |pivot| of a line, the largest element of its matrix and of its factor U, and how many pivots were
 * replaced. */
typedef struct { CLA_REAL smallest, largest, factor, replaced; } cla_watch;

#define CLA_WATCH_NOTHING {INFINITY, 0, 0, 0}

/* The larger of `most` and |a|, or `most` for a NaN */
CLA_INLINE CLA_REAL cla_larger_size(CLA_REAL most, cla_lane a)
{
    const CLA_REAL size = cla_lane_abs(a);
    return size > most ? size : most;
}

/* Of a block whose largest element is `norm`: sqrt(epsilon) times that, and at least `least` */
CLA_INLINE CLA_REAL cla_threshold(CLA_REAL norm, CLA_REAL epsilon, CLA_REAL least)
{
    return fmax(cla_lane_sqrt(epsilon) * (norm == 0 ? 1 : norm), least);
}

/* A pivot after what is done about it: to `perturb` replaces it by the threshold if it is below that, to `shift` adds
 * the threshold, both with the sign of the pivot's real part. */
CLA_INLINE cla_lane cla_watched_pivot(int perturb, int shift, cla_lane pivot, CLA_REAL threshold, cla_watch *w)
{
    const CLA_REAL size = cla_lane_abs(pivot), away = cla_lane_copysign(threshold, cla_lane_re(pivot));
    w->smallest = fmin(w->smallest, size);
    if (perturb && size < threshold) {
        pivot = cla_lane_real(away);
        w->replaced++;
    }
    if (shift) pivot = cla_away_from_zero(pivot, threshold);
    w->factor = cla_larger_size(w->factor, pivot);
    return pivot;
}

/* What is kept of lane v of pack p; row i of that pack is at watched[(p * CLA_WATCHED + i) * CLA_PARTS * V]. */
CLA_INLINE void cla_watch_store(cla_watch w, __global CLA_REAL *watched, long p, long v)
{
    watched += p * CLA_WATCHED * (CLA_PARTS * CLA_VLEN) + v;
    watched[0] = w.smallest;
    watched[CLA_PARTS * CLA_VLEN] = w.largest;
    watched[2 * CLA_PARTS * CLA_VLEN] = w.factor;
    watched[3 * CLA_PARTS * CLA_VLEN] = w.replaced;
}

#endif
