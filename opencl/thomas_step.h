/* Step STEP of a block row in factor_team of thomas.cl: the pivots are in columns of work-item STEP of a line. They were
 * written to local memory, and are applied to the columns of all others, of which the next has pivots of its own.
 */
#if STEP < TEAM
{
    columns = columns_next;
    columns_next = shared + (turn ^= COLUMNS * COLUMN);
#if (COPIES && STEP == TEAM - 1) || (BY_TURNS && STEP == 0)
    cla_copies_wait();
#endif
#if BULK && STEP == TEAM - 1
    if (!last) cla_arrivals_wait(arrivals + row % DEPTH, row / DEPTH);
#endif
    barrier(FENCES);
#if BULK && STEP == 0
    if (get_local_id(0) == 0) { FETCH_BLOCKS(row + DEPTH - 1) } /* where all have taken what was there */
#elif !BULK && STEP == TURN_OF_E
    if (!last) { /* past the last row's products, and a barrier before this one's */
        if (AHEAD == 0) { OWN(LOAD_E) }
        if (!COPIES) { OWN(SHARE_E) }
        COPIED(COPY_E)
        if (IN_ADVANCE && row + 2 < count) {
            at += CLA_SLOT;
            OWN(LOAD_E)
            at -= CLA_SLOT;
        }
    }
#endif
#if BY_TURNS && STEP == 0
    if (!last) {
        COPIED(TAKE_F)
        at_diag += CLA_SLOT;
        COPIED(COPY_N)
        at_diag -= CLA_SLOT;
    }
#endif
    CLA_UNROLL2(COLUMNS, APPLY, STEP)
#if STEP + 1 < TEAM
    PANEL(STEP + 1)
#endif
}
#include "next_step.h"
#if STEP % 8
#include "thomas_step.h"
#endif
#endif
