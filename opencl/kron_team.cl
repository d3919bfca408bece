/* Kronecker products of a batch, by teams; see kron_items.h. A work-item takes what lies along an axis into its registers,
 * and puts the products in its place. The first of several factors takes X as it comes, and the last of three gives Y as
 * it goes, where neighbours are neighbours in memory.
 *
 * GROUP    work-items of a work-group
 * ITEMS    items of a work-group
 * PENCILS  what a work-item has in its registers at a time of what lies along an axis
 * ROWS     rows of a factor at a time, a multiple of WIDE
 * DIRECT   1: two factors are applied along C first, to rows of X as they come: for short rows
 * WHOLE    1: what the last of three makes goes through local memory, so that neighbours write whole lines
 * ROUNDS   how often a work-group takes on ITEMS items, where there are many: then common factors are read once
 * AHEAD    1: of two or three factors, loads of the next items are under way during the products of the last; PENCILS
 *          are then all that a work-item has to do
 * WIDE     real numbers along axis C that are moved at a time: it divides NC and MC and where they begin in memory, and
 *          these numbers are neighbours
 */
#include "kron_items.h"

__kernel CLA_GROUP_OF(GROUP) void kron_team(COMMON)
{
    __local cla_wide tile[ITEMS * LA * LB * LC];
#if SUM
    __local cla_wide sums[ITEMS * LA * LB * LC];
#endif
    KEPT(A, a_of, MA, NA)
    KEPT(B, b_of, MB, NB)
    KEPT(C, c_of, MC, NC)
    const int t = get_local_id(0);
    const long step = get_num_groups(0) * (long)ITEMS;
    long q0 = get_group_id(0) * (long)ITEMS;
#if AHEAD
    cla_wide ahead[PENCILS][NA];
    FETCH(0)
#define GET_FIRST GET_AHEAD
#define FETCH_NEXT if (q0 + step < nm) FETCH(step)
#else
#define GET_FIRST GET_A
#define FETCH_NEXT
#endif
#define KEEP_THOSE(now) \
    if (AOWN == now) { KEEP(A, a_of, MA, NA, SUM && FACTORS > 1) } \
    if (BOWN == now) { KEEP(B, b_of, MB, NB, SUM && FACTORS > 2) } \
    if (COWN == now) { KEEP(C, c_of, MC, NC, 1) }
    KEEP_THOSE(0)
    for (; q0 < nm; q0 += step) {
        KEEP_THOSE(1)
#if FACTORS == 1
        EACH(1, 1, NC / WIDE, l, a, b, c) tile[PLACE(l, a, b, c)] = X_AT(l, a, b, c);
#endif
        BETWEEN
#if DIRECT
        APPLY(cla_lane, cla_lane_real(0), cla_lane_fma, COWN, c_of, MC, NC, NA, NB, ROW_C, PUT_C)
        BETWEEN
        ALONG(AOWN, a_of, MA, NA, NB, MC / WIDE, DOWN_A, OUT_A)
#else
        MULTIPLY(AOWN, a_of, BOWN, b_of, COWN, c_of, GET_FIRST, PUT_B, FETCH_NEXT)
#if WHOLE
        BETWEEN
#endif
#if WHOLE || FACTORS < 3
        EACH(MA, MB, MC / WIDE, l, a, b, c) TO_Y(l, a, b, c, sums[PLACE(l, a, b, c)])
#endif
#endif
        if (ROUNDS == 1) break;
#if FACTORS == 1 || AOWN + BOWN + COWN > 0
        BETWEEN
#endif
    }
}
