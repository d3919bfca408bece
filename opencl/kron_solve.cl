/* Y <- alpha (P x Q x R) D (A x B x C) X + beta Y of a batch with square factors, by teams as in kron_team.cl. D is the
 * reciprocals of sums of one of K, of L and of M, vectors of all axes. The macros are those of kron_items.h, also for P,
 * Q, R, K, L, M; WIDE, WHOLE, SUM and DIRECT are 1, 1, 0 and 0.
 */
#include "kron_items.h"

#ifndef PV
#define PV 1
#define QV 1
#define RV 1
#define KV 1
#define LV 1
#define MV 1
#define POWN 0
#define QOWN 0
#define ROWN 0
#define PCONJ 0
#define QCONJ 0
#define RCONJ 0
#endif

#define VALUE(F, i, q) cla_lane_load_apart(F, F##0 + ITEM(F##V, q, F##step) + (i) * F##r, F##V)
__kernel CLA_GROUP_OF(GROUP) void kron_solve(COMMON FACTOR(P) FACTOR(Q) FACTOR(R) FACTOR(K) FACTOR(L) FACTOR(M))
{
    __local cla_lane tile[ITEMS * LA * LB * LC];
    KEPT(A, a_of, NA, NA)
    KEPT(B, b_of, NB, NB)
    KEPT(C, c_of, NC, NC)
    KEPT(P, p_of, NA, NA)
    KEPT(Q, q_of, NB, NB)
    KEPT(R, r_of, NC, NC)
    const int t = get_local_id(0);
    const long q0 = get_group_id(0) * (long)ITEMS;
    KEEP(A, a_of, NA, NA, 0)
    KEEP(B, b_of, NB, NB, 0)
    KEEP(C, c_of, NC, NC, 0)
    KEEP(P, p_of, NA, NA, 0)
    KEEP(Q, q_of, NB, NB, 0)
    KEEP(R, r_of, NC, NC, 1)
    if (FACTORS == 1) EACH(1, 1, NC, l, a, b, c) tile[PLACE(l, a, b, c)] = X_AT(l, a, b, c);
    BETWEEN
    MULTIPLY(AOWN, a_of, BOWN, b_of, COWN, c_of, GET_A, PUT_B,)
    BETWEEN
    EACH(NA, NB, NC, l, a, b, c) {
        const long q = min(q0 + l, nm - 1);
        cla_lane total = VALUE(M, c, q);
        if (FACTORS > 1) total += VALUE(K, a, q);
        if (FACTORS > 2) total += VALUE(L, b, q);
        tile[PLACE(l, a, b, c)] = cla_lane_mul(cla_lane_recip(total), tile[PLACE(l, a, b, c)]);
    }
    BETWEEN
    MULTIPLY(POWN, p_of, QOWN, q_of, ROWN, r_of, DOWN_A, PUT_B,)
    BETWEEN
    EACH(NA, NB, NC, l, a, b, c) TO_Y(l, a, b, c, tile[PLACE(l, a, b, c)])
}
