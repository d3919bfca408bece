/* What the steps of grid_lu_step.h, grid_lu_block_step.h and grid_substitution_step.h take. Define INV, 1 for the steps of
 * an inversion in place; KEEP, 1 to keep L; FIRST, of the columns that a step changes; RECIPROCALS, 1 to keep those
 * of pivots, not these; and TILE, elements in local memory that a team has for itself.
 */
#define LU_STEPS (M < N ? M : N)
#define VECTOR (sizeof(cla_lane) < 16 ? 16 / (int)sizeof(cla_lane) : 1) /* elements that are read together */
#define PART_ ((OWN_COLUMNS + VECTOR - 1) / VECTOR * VECTOR)
/* a member's of a row: those of others are in other banks */
#define PART (PART_ + ((Q > 1 || (!PACKED && MEMBERS < 32)) && PART_ / VECTOR % 2 == 0 ? VECTOR : 0))
#define WIDTH (PART * Q)
#define LARGER(size, place, than, its_place) ((size) > (than) || ((size) == (than) && (place) < (its_place)))
/* The largest of what members have left in `sizes` and `places`; `each` is done for member o, `better` or not */
#define LU_LARGEST(each) \
    size = -1; \
    for (int o = 0; o < P; o++) { \
        const CLA_REAL other = sizes[team * P + o]; \
        const int there = places[team * P + o], better = LARGER(other, there, size, at); \
        at = better ? there : at; \
        size = better ? other : size; \
        each \
    }
#if CLA_WARP == 2 && P >= M
#define SIZE_OF(x) cla_lane_abs1(x)
#else
#define SIZE_OF(x) fmin(cla_lane_abs1(x), (CLA_REAL)INFINITY) /* what is not a number counts as infinite */
#endif

#if CLA_WARP == 2
#define LU_CANDIDATES (2 * TEAMS * CLA_WARPS)
#define LU_COLUMN
#else
#define LU_CANDIDATES (TEAMS * P)
#define LU_COLUMN __local cla_lane columns[TEAMS * 2 * LINE];
#endif
#ifdef ROWS /* which take steps in blocks */
#undef LU_COLUMN
#define LU_COLUMN
#define LU_ROWS
#else
#define LU_ROWS __local cla_lane rows[TEAMS * 2 * CLA_WARPS * WIDTH] __attribute__((aligned(16)));
#endif
#define LU_HEAD \
    LU_ROWS \
    __local cla_lane tiles[TEAMS * TILE] __attribute__((aligned(16))), pivots[TEAMS * LU_STEPS]; \
    __local CLA_REAL sizes[LU_CANDIDATES]; \
    __local int places[LU_CANDIDATES], swaps[TEAMS * LU_STEPS], singular[TEAMS]; \
    LU_COLUMN \
    CLA_GRID_HEAD \
    CLA_LOCAL cla_lane *tile = tiles + team * TILE; \
    cla_lane a[OWN_ROWS][OWN_COLUMNS]; \
    int place[OWN_ROWS]; \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) place[u] = M % P == 0 || u * P + p < M ? u * P + p : -1; \
    if (t == 0) singular[team] = 0;

/* The columns of a substitution */
#define BLOCK (BACK ? (N - 1) / Q - STEP : STEP)
#define IN_BLOCK (N - BLOCK * Q < Q ? N - BLOCK * Q : Q) /* steps; a call of min() would be no number to PoCL */

/* For grid_lu_block_step.h: which row of a member is that of the pivot in step k, the first of the largest in column s of w;
 * at which place it is; and that row. */
#if CLA_WARP == 2
/* Returns the bit of the work-item of the team that has it. */
CLA_INLINE uint cla_find_pivot(const CLA_REAL *size, const int *place, const int *dead, int *found)
{
    int high[OWN_ROWS], most = -1, own = 0;
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
        high[u] = cla_high(size[u]) | dead[u];
        most = max(most, high[u]);
    }
    most = cla_most_of(P, most);
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
        found[u] = high[u] == most;
        own += found[u];
    }
    uint which = cla_which(own) & cla_team(P);
    if (cla_which(own > 1 || (which & (which - 1)) != 0)) { /* in the whole warp: there is nothing that only some come to */
        int first = INT_MIN;
        if (sizeof(CLA_REAL) == 8) {
            int low[OWN_ROWS]; /* in the order of numbers without sign */
            most = INT_MIN;
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
                low[u] = found[u] ? cla_low(size[u]) ^ INT_MIN : INT_MIN;
                most = max(most, low[u]);
            }
            most = cla_most_of(P, most);
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) found[u] &= low[u] == most;
        }
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) first = max(first, found[u] ? -place[u] : INT_MIN);
        first = cla_most_of(P, first);
        own = 0;
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) {
            found[u] &= -place[u] == first;
            own |= found[u];
        }
        which = cla_which(own) & cla_team(P);
    }
    return which;
}
/* The work-item that has the pivot, as `first`; which of its rows each takes for the largest; the reciprocal of that
 * element, as `own`, 1 for 0; and that row of the first one, with the reciprocal instead of the pivot. Where places do not
 * count, of elements that agree in 20 bits any is taken, unless they are so large or small that a reciprocal by tables fails. */
#define LEAST_HIGH (sizeof(CLA_REAL) == 8 ? 0x00300000 : 0x01000000)
#define MOST_HIGH (sizeof(CLA_REAL) == 8 ? 0x7fc00000 : 0x7e000000)
#define LU_SIZE_BITS(u) ((cla_high(cla_lane_abs1(w[u][s])) & INT_MAX) | dead[u])
#define LU_FIND \
    int first, better = 0, high = LU_SIZE_BITS(0); \
    cla_lane own, largest = w[0][s]; \
    CLA_UNROLL for (int u = 1; u < OWN_ROWS; u++) { \
        const int other = LU_SIZE_BITS(u); \
        better = other > high ? u : better; \
        largest = cla_lane_select(other > high, w[u][s], largest); \
        high = max(high, other); \
    } \
    const int most = cla_most_of(P, high); \
    const uint which = cla_which(high == most) & cla_team(P); \
    first = cla_last_of(which); \
    own = CLA_NEAR_RECIPROCAL(largest); \
    int exact = CLA_COMPLEX | ((uint)(most - LEAST_HIGH) > (uint)(MOST_HIGH - LEAST_HIGH)); \
    if (KEEP) { \
        int equal = 0; \
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) equal += LU_SIZE_BITS(u) == most; \
        exact |= equal > 1 || (which & (which - 1)) != 0; \
    } \
    const uint exacts = cla_which(exact); \
    if (exacts) { /* in the whole warp, but for the teams that need it: others keep their bits */ \
        CLA_REAL size[OWN_ROWS]; \
        CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) size[u] = cla_lane_abs1(w[u][s]); \
        const int foremost = cla_first_of(cla_find_pivot(size, place, dead, found)); \
        if (exacts & cla_team(P)) { \
            first = foremost; \
            CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) { \
                better = found[u] ? u : better; \
                largest = cla_lane_select(found[u], w[u][s], largest); \
            } \
            own = cla_lane_is_zero(largest) ? cla_lane_real(1) : cla_lane_recip(largest); \
            if (get_local_id(0) % 32 == first && cla_lane_is_zero(largest) && !singular[team]) singular[team] = k + 1; \
        } \
    } \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) found[u] = get_local_id(0) % 32 == first && better == u; \
    CLA_UNROLL for (int j = 0; j < TURNS; j++) { \
        cla_lane x = w[0][j]; \
        CLA_UNROLL for (int u = 1; u < OWN_ROWS; u++) x = cla_lane_select(better == u, w[u][j], x); \
        row[j] = cla_taken(j == s ? own : x, first); \
    } \
    int at = 0; \
    if (KEEP) { \
        at = place[0]; \
        CLA_UNROLL for (int u = 1; u < OWN_ROWS; u++) at = better == u ? place[u] : at; \
        at = cla_taken_int(at, first); \
    } \
    if (get_local_id(0) % 32 == first) { \
        pivots[team * LU_STEPS + k] = RECIPROCALS ? own : largest; \
        swaps[team * LU_STEPS + k] = KEEP ? at : better * P + p; \
    }
#else
#ifdef LIMIT /* the row at place k stays where its element is at least so many times as large */
#define LU_OWN CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) if (place[u] == k) diagonal[team] = SIZE_OF(w[u][s]);
#define LU_STAY at = diagonal[team] >= LIMIT * size ? k : at;
#else
#define LU_OWN
#define LU_STAY
#endif
#define LU_FIND \
    int at = -1; \
    CLA_REAL size = -1; \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) { \
        const CLA_REAL other = dead[u] ? -1 : SIZE_OF(w[u][s]); \
        const int better = LARGER(other, place[u], size, at); \
        at = better ? place[u] : at; \
        size = better ? other : size; \
    } \
    sizes[team * P + p] = size; \
    places[team * P + p] = at; \
    LU_OWN \
    CLA_TOGETHER \
    LU_LARGEST() \
    LU_STAY \
    CLA_UNROLL for (int u = 0; u < OWN_ROWS; u++) { \
        found[u] = place[u] == at; \
        if (found[u]) { \
            const int zero = cla_lane_is_zero(w[u][s]); \
            const cla_lane own = zero ? cla_lane_real(1) : cla_lane_recip(w[u][s]); \
            pivots[team * LU_STEPS + k] = RECIPROCALS ? own : w[u][s]; \
            swaps[team * LU_STEPS + k] = KEEP ? at : u * P + p; \
            if (zero && !singular[team]) singular[team] = k + 1; \
            CLA_UNROLL for (int j = 0; j < TURNS; j++) lines[j] = cla_lane_select(j == s, own, w[u][j]); \
        } \
    } \
    CLA_TOGETHER \
    CLA_UNROLL for (int j = 0; j < TURNS; j++) row[j] = lines[j];
#endif
