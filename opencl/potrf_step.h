/* Column STEP of L, and those that go through local memory together with it, in potrf_team of potrf.cl. */
#if STEP < N
#if STEP % AT_ONCE == 0
if (c == OWNER(STEP))
    CLA_UNROLL for (int k = STEP; k < STEP + AT_ONCE; k++)
        if (k < N) {
            /* Pivot k and its column: scaled, and written to local memory. Which of the pivots before it was the first bad
             * one, comes from there too. */
            const int own = OWN(k);
            CLA_LOCAL cla_lane *column = LOCAL_COLUMN(k);
            CLA_REAL r;
            if (k > 0) bad = *first_bad;
            AT(k, own) = cla_lane_real(cla_root(cla_lane_re(AT(k, own)), k, &bad, &r));
            *first_bad = bad;
            CLA_UNROLL for (int i = k + 1; i < N; i++) {
                AT(i, own) = AT(i, own) * r;
                column[i * LANES] = AT(i, own);
            }
            /* Columns of the panel on its right, minus its multiples: from registers. */
            if (PANEL)
                CLA_UNROLL for (int i = k + 1; i < N; i++)
                    CLA_UNROLL for (int j = own + 1; j < COLUMNS; j++)
                        if (i >= k - own + j)
                            AT(i, j) = cla_lane_fnma(AT(i, own), cla_lane_conj(AT(min(k - own + j, N - 1), own)),
                                                     AT(i, j));
        }
if (STEP + AT_ONCE < N) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (!PANEL || c > OWNER(STEP))
        CLA_UNROLL for (int k = STEP; k < STEP + AT_ONCE; k++) {
            /* Columns of this work-item right of column k, minus column k of L times the conjugate of its element in their
             * row. From those of them that are done already 0 is subtracted. */
            const int first = PANEL ? 0 : OWN(k + 1);
            CLA_LOCAL const cla_lane *column = LOCAL_COLUMN(k);
            cla_lane u[COLUMNS];
            CLA_UNROLL for (int j = first; j < COLUMNS; j++)
                u[j] = IF_RIGHT(k, j, cla_lane_conj(column[min(COLUMN(j), N - 1) * LANES]));
            CLA_UNROLL for (int i = k + 1; i < N; i++) {
                const cla_lane l = column[i * LANES];
                CLA_UNROLL for (int j = first; j < COLUMNS; j++)
                    if (i >= FIRST(j)) AT(i, j) = cla_lane_fnma(IF_RIGHT(k, j, l), u[j], AT(i, j));
            }
        }
}
#endif
#include "next_step.h"
#if STEP % 8
#include "potrf_step.h"
#endif
#endif
