/* Matrices on packs of which a work-item holds a column in registers, element i as a[i], for up to 32 rows, M: what
 * goes from one column to all others passes through local memory, and is the same for all of them.
 *
 * A work-group has LANES matrices of a pack, and WIDTH columns of each. Steps are loops, since indices of registers do
 * not depend on them.
 */
#include "known.h"
#include "unroll.h"

#define VECTOR (sizeof(cla_lane) < 16 ? 16 / (int)sizeof(cla_lane) : 1) /* elements that are read together */
#define WHOLE ((M + VECTOR - 1) / VECTOR * VECTOR)
#define LINE (WHOLE + (WHOLE / VECTOR % 2 ? 0 : VECTOR)) /* of a column in local memory: those of neighbours are in other banks */

#define CLA_COLUMN_HEAD \
    const int l = get_local_id(0) % LANES, c = get_local_id(0) / LANES; \
    const long q = get_group_id(0) * (long)LANES + l;
#define EACH_ROW CLA_UNROLL for (int i = 0; i < M; i++)

/* a[chosen], for a row that is known when this runs: of the elements that are half as many apart as there are left, one
 * of two, until one is left. */
#define CLA_COLUMN_HALVE(half) \
    CLA_UNROLL for (int i = 0; i < half; i++) \
        if (i + half < M) part[i] = cla_lane_select(chosen & half, part[i + half], part[i]);
CLA_INLINE cla_lane cla_column_take(const cla_lane *a, int chosen)
{
    cla_lane part[M];
    EACH_ROW part[i] = a[i];
    CLA_COLUMN_HALVE(16)
    CLA_COLUMN_HALVE(8)
    CLA_COLUMN_HALVE(4)
    CLA_COLUMN_HALVE(2)
    CLA_COLUMN_HALVE(1)
    return part[0];
}
