/* csrsv, csrlusv: Y <- op(L U)^-1 X with the factors of csrilu and csrlu, for the lane of a team (team.h). */
#ifndef CLA_CSRSV_CL
#define CLA_CSRSV_CL

#include "csrmm.cl"
#include "team.h"

#ifndef CLA_CSRSV_ENTRIES
#define CLA_CSRSV_ENTRIES 3 /* of a row that a member has, at least, where members share it */
#endif

/* Factors by their pattern. Row i of it is row order[i] of X and Y, and `indices` are rows of these; without `order`
 * they are the same. With `trans` the pattern is that of the transposes, and `places` are those of their entries.
 *
 * A team needs `levels`, a list of rows that need each other for the lower triangle and one for the upper one: how many
 * levels there are, where they begin, where the last ends, how many entries the longest row of each has, and rows. */
typedef struct {
    cla_matrix values;
    __global const long *indptr;
    __global const int *indices, *diagonal, *levels, *order, *places;
    int trans;
} cla_csr_factors;

/* Row i of y <- that of X, less the multiples of what is to be had of y; of U, times the reciprocal of the pivot. It is
 * computed by a part of the team of so many members, all parts together, if there is one for this part. */
CLA_INLINE void cla_csrsv_row(int there, int upper, int i, int j, int part, cla_csr_factors F, cla_matrix X,
                              cla_matrix Y, CLA_LOCAL cla_lane *room)
{
    const int member = cla_team_member() % part;
    const long middle = F.diagonal[i], first = upper ? middle + 1 : F.indptr[i];
    const long last = upper ? F.indptr[i + 1] : middle;
    const cla_lane own = cla_csr_sum(F.values, F.indices, F.places, first + member, there ? last : first, part, Y, j);
    const cla_lane sum = cla_team_sum(room, part, own);
    if (!there || member) return;
    const int row = F.order ? F.order[i] : i;
    const long pivot = F.places ? F.places[middle] : middle;
    const cla_lane y = cla_get(X, row, j) - sum;
    cla_set(Y, row, j, upper != F.trans ? cla_lane_mul(y, cla_matrix_load(F.values, pivot * F.values.rs)) : y);
}

/* X and Y are n x nrhs, and Y may be X. A team needs a lane for each work-item of the group as `room`. */
CLA_INLINE void cla_csrlusv(int n, int nrhs, cla_csr_factors F, cla_matrix X, cla_matrix Y, CLA_LOCAL cla_lane *room)
{
    for (int j = 0; j < nrhs; j++) {
#if CLA_TEAM > 1
        __global const int *starts = F.levels + 1;
        for (int upper = 0; upper < 2; upper++) {
            const int count = starts[-1];
            __global const int *longest = starts + count + 1, *rows = longest + count;
            for (int level = 0; level < count; level++) {
                const int first = starts[level], last = starts[level + 1];
                int part = CLA_TEAM; /* members that share a row: fewer where there are more rows, or few entries */
                while (part > 1 && (part * (last - first) > CLA_TEAM || part * CLA_CSRSV_ENTRIES > longest[level]))
                    part /= 2;
                const int parts = CLA_TEAM / part;
                for (int k = first; k < last; k += parts) {
                    const int own = k + cla_team_member() / part;
                    cla_csrsv_row(own < last, upper, rows[min(own, last - 1)], j, part, F, upper ? Y : X, Y, room);
                }
                cla_team_sync();
            }
            starts = rows + n + 1;
        }
#else
        for (int i = 0; i < n; i++) cla_csrsv_row(1, 0, i, j, 1, F, X, Y, room);
        for (int i = n - 1; i >= 0; i--) cla_csrsv_row(1, 1, i, j, 1, F, Y, Y, room);
#endif
    }
}

/* Likewise, with factors whose rows are those of X and Y. */
CLA_INLINE void cla_csrsv(int n, int nrhs, cla_matrix factors, __global const long *indptr,
                          __global const int *indices, __global const int *diagonal, cla_matrix X, cla_matrix Y,
                          __global const int *levels, CLA_LOCAL cla_lane *room)
{
    const cla_csr_factors F = {factors, indptr, indices, diagonal, levels, 0, 0, 0};
    cla_csrlusv(n, nrhs, F, X, Y, room);
}
#endif
