/* Eigenvalues and eigenvectors of stacks of ordinary Hermitian matrices in one pass, by teams as spectral.h has them.
 *
 * Arguments are those of ordinary.h, macros those and the ones of spectral.h. Define UPLO, 0 if the lower triangle is
 * read, 1 for the upper one; VECTORS, 0 for eigenvalues alone.
 *
 * A = Q T Q^H as LAPACK's sytd2, with reflectors in the columns of A; then Q in place of A; then steps of the implicit QR
 * algorithm with Wilkinson's shift, as in steqr, each on the last block of T.
 */
#include "spectral.h"

#ifndef UPLO
#define UPLO 0
#define VECTORS 1
#endif

#define LINE LINE_OF(N)
#define TURNED_LINE (IN_GLOBAL ? LINE : 1) /* from column to column of what is turned */
#define MATRIX TEAM_OF((IN_GLOBAL && VECTORS ? 2 : 1) * N * LINE)
#define OWN ((N + MEMBERS - 1) / MEMBERS) /* columns of a member */
#define COLUMN(u) min(t + (u) * MEMBERS, N - 1)
#define HAS_COLUMN(u, k) (t + (u) * MEMBERS > (k) && t + (u) * MEMBERS < N)
#define EXPONENT (sizeof(CLA_REAL) == 8 ? 480 : 48) /* of scaled matrices: squares neither overflow nor underflow */
#define FLOOR (sizeof(CLA_REAL) == 8 ? (CLA_REAL)0x1p-496 : (CLA_REAL)0x1p-64)

/* diagonals d and e of T; A <- Q, where columns of T are put into A by reflectors */
CLA_INLINE void reduce(CLA_LOCAL CLA_REAL *room, int t, CLA_SPACE cla_lane *A, CLA_LOCAL CLA_REAL *d,
                       CLA_LOCAL CLA_REAL *e, CLA_LOCAL cla_lane *tau, CLA_LOCAL cla_lane *w)
{
    CLA_ROLLED for (int k = 0; k < N - 1; k++) {
        const int m = N - k - 2;
        const cla_coefficients h = cla_reflector_of_team(room, t, A[(k + 1) * LINE + k], m,
                                                         cla_part_at(A + (k + 2) * LINE + k, LINE, 1, 0));
        MEET
        if (t == 0) {
            d[k] = cla_lane_re(A[k * LINE + k]);
            e[k] = h.beta;
            tau[k] = h.tau;
            A[(k + 1) * LINE + k] = cla_lane_real(1);
        }
        MEET
        cla_lane p[OWN], v[OWN], inner = cla_lane_real(0);
        CLA_UNROLL for (int u = 0; u < OWN; u++) p[u] = cla_lane_real(0);
        for (int i = k + 1; i < N; i++) {
            const cla_lane x = A[i * LINE + k];
            CLA_UNROLL for (int u = 0; u < OWN; u++)
                p[u] = cla_lane_fma(cla_lane_conj(A[i * LINE + COLUMN(u)]), x, p[u]);
        }
        CLA_UNROLL for (int u = 0; u < OWN; u++) {
            v[u] = A[COLUMN(u) * LINE + k];
            p[u] = cla_lane_mul(h.tau, p[u]);
            const cla_lane part = cla_lane_mul(cla_lane_conj(p[u]), v[u]);
            inner = inner + cla_lane_select(HAS_COLUMN(u, k), part, cla_lane_real(0));
        }
        const cla_lane share = cla_lane_mul(h.tau, cla_lanes_of_team(room, inner)) * (CLA_REAL)-0.5;
        CLA_UNROLL for (int u = 0; u < OWN; u++) {
            p[u] = cla_lane_fma(share, v[u], p[u]);
            if (HAS_COLUMN(u, k)) w[COLUMN(u)] = p[u];
            p[u] = cla_lane_conj(p[u]);
            v[u] = cla_lane_conj(v[u]);
        }
        MEET
        for (int i = k + 1; i < N; i++) {
            const cla_lane x = A[i * LINE + k], y = w[i];
            CLA_UNROLL for (int u = 0; u < OWN; u++) {
                const cla_lane a = cla_lane_fnma(x, p[u], cla_lane_fnma(y, v[u], A[i * LINE + COLUMN(u)]));
                if (HAS_COLUMN(u, k)) A[i * LINE + COLUMN(u)] = a;
            }
        }
        MEET
    }
    if (t == 0) {
        d[N - 1] = cla_lane_re(A[N * LINE - LINE + N - 1]);
        e[N - 1] = 0;
    }
}

CLA_INLINE void expand(int t, CLA_SPACE cla_lane *A, CLA_LOCAL const cla_lane *tau)
{
    CLA_ROLLED for (int k = N - 2; k >= 0; k--) {
        const int m = N - k - 2;
        const cla_part v = cla_part_at(A + (k + 2) * LINE + k, LINE, 1, 0);
        const cla_part top = cla_part_from(v, -1, 1);
        cla_reflect_by_team(t, m, m, 1, v, tau[k], cla_part_from(top, 0, 1), cla_part_from(v, 0, 2));
        cla_first_of_reflector(t, m, v, tau[k], top, cla_part_from(v, 0, 1));
        MEET
    }
    for (int i = t; i < N; i += MEMBERS) {
        A[i * LINE] = cla_lane_real(i == 0);
        A[i] = cla_lane_real(i == 0);
    }
}

/* A step on a block of T, and its rotations */
CLA_INLINE void step(cla_block *block, CLA_LOCAL CLA_REAL *d, CLA_LOCAL CLA_REAL *e, CLA_LOCAL cla_plane *planes)
{
    const int begin = block->begin, end = block->end;
    const CLA_REAL between = e[end - 1], last = d[end], apart = (d[end - 1] - last) / 2;
    const CLA_REAL square = fma(apart, apart, between * between);
    const CLA_REAL sum = apart + copysign(square * cla_lane_rsqrt(square), apart), inverse = cla_lane_rsqrt(fabs(sum));
    const CLA_REAL mu = last - copysign(between * inverse * (between * inverse), sum);
    CLA_REAL x = d[begin], y = d[begin + 1], off = e[begin], g = x - mu, p = 0, c = 1, s = 1;
    CLA_REAL before = 0, beside = INFINITY, now = 0; /* of the former place: what it is between, which is known by now */
    int split = begin - 1;
    for (int i = begin; i < end; i++) {
        const CLA_REAL next = y, small = c * off;
        CLA_REAL length;
        split = cla_counts(before, beside, now, FLOOR) ? split : i - 2;
        const cla_plane plane = cla_plane_of(g, s * off, &length);
        planes[i] = plane;
        c = plane.x;
        s = plane.y;
        off = e[i + 1]; /* or what is behind, where this is the last */
        y = d[i + 2];
        x -= p;
        const CLA_REAL r = fma(next - x, s, 2 * c * small);
        p = s * r;
        before = now;
        beside = length;
        now = x + p;
        g = fma(c, r, CLA_MINUS(small));
        e[max(i - 1, begin)] = length;
        d[i] = now;
        x = next;
    }
    split = cla_counts(before, beside, now, FLOOR) ? split : end - 2;
    e[end - 1] = g;
    d[end] = x - p;
    cla_after_step(block, split, !cla_counts(now, g, x - p, FLOOR), d, e, FLOOR);
}

#if VECTORS
#define RESULTS __global TARGET *restrict w, __global TARGET *restrict X
#else
#define RESULTS __global TARGET *restrict w
#endif

__kernel CLA_GROUP_OF(GROUP) void team_eigh(long nm, long told, __global int *failed CLA_ARGUMENT(A), RESULTS CLA_MATRICES)
{
    CLA_SPECTRAL_ROOM(MATRIX)
    __local cla_plane all_planes[TEAMS * ODD(2 * N)];
    __local CLA_REAL diagonals[TEAMS * ODD(2 * N)];
    CLA_STATES(states)
    __local int orders[TEAMS * N];
    const int team = get_local_id(0) / MEMBERS, t = get_local_id(0) % MEMBERS;
    const long first = CLA_FIRST, q = first + team;
    CLA_SPACE cla_lane *a = matrices + team * MATRIX;
    CLA_LOCAL cla_plane *planes = all_planes + team * ODD(2 * N);
    CLA_LOCAL CLA_REAL *d = diagonals + team * ODD(2 * N), *e = d + N;
    CLA_LOCAL int *order = orders + team * N;

    for (int k = get_local_id(0); k < TEAMS * N * N; k += GROUP) {
        const int i = k / N % N, j = k % N;
        if (UPLO ? j >= i : i >= j) {
            const cla_lane x = CLA_NUMBER_AT(A, A0 + min(first + k / (N * N), nm - 1) * Astep + i * ARS + j * ACS);
            matrices[k / (N * N) * MATRIX + i * LINE + j] = i == j ? cla_lane_real(cla_lane_re(x)) : x;
            matrices[k / (N * N) * MATRIX + j * LINE + i] = i == j ? cla_lane_real(cla_lane_re(x)) : cla_lane_conj(x);
        }
    }
    GATHER
    const int power = cla_scale_by_team(room, t, N, N, a, LINE, EXPONENT), known = power != CLA_UNKNOWN;
    CLA_LOCAL cla_lane *tau = (CLA_LOCAL cla_lane *)planes; /* which are for later */
    reduce(room, t, a, d, e, tau, tau + N);
    if (VECTORS) expand(t, a, tau);
#if IN_GLOBAL && VECTORS
    MEET
    for (int k = t; k < N * N; k += MEMBERS) a[(N + k % N) * LINE + k / N] = a[k / N * LINE + k % N];
    a += N * LINE;
#endif

    if (t == 0) CLA_BEFORE(states, team) = known;
    GATHER
    const int chief = get_local_id(0) < TEAMS, own = chief ? get_local_id(0) : 0;
    CLA_LOCAL CLA_REAL *own_d = diagonals + own * ODD(2 * N), *own_e = own_d + N;
    cla_block block = {0, CLA_BEFORE(states, own) ? N - 1 : 0, CLA_TRIES * N};
    if (chief) cla_last_block(&block, own_d, own_e, FLOOR);
    for (int turn = 0, goes_on = 1; goes_on; turn++) {
        const int place = turn % 2 * N;
        if (chief) {
            const int acts = block.begin < block.end && block.tries > 0;
            CLA_WINDOW(states, turn, own)[0] = block.begin;
            CLA_WINDOW(states, turn, own)[1] = acts ? block.end : block.begin;
            if (acts) step(&block, own_d, own_e, all_planes + own * ODD(2 * N) + place);
        }
        GATHER
        const int begin = CLA_WINDOW(states, turn, team)[0], end = CLA_WINDOW(states, turn, team)[1];
        goes_on = cla_goes_on(states, turn);
        if (VECTORS && begin < end)
            for (int i = t < CHIEFS ? N : t - CHIEFS; i < N; i += MEMBERS - CHIEFS)
                cla_turn_row(a + i * (IN_GLOBAL ? 1 : LINE), TURNED_LINE, planes + place, begin, end);
    }
    if (chief) CLA_BEFORE(states, own) = block.begin == block.end;
    GATHER
    CLA_REAL largest = 0;
    for (int j = t; j < N; j += MEMBERS) largest = cla_larger(largest, cla_lane_real(d[j]));
    largest = cla_largest_of_team(room, largest);
    const int bad = !known || !CLA_BEFORE(states, team) || !(largest < INFINITY);
    for (int j = t; j < N; j += MEMBERS) {
        const int rank = bad ? j : cla_rank(d, N, j, 0);
        order[rank] = j;
        const CLA_REAL x = cla_lane_re(cla_scaled(cla_lane_real(d[j]), known ? -power : 0));
        if (q < nm) w[q * N + rank] = (TARGET)(bad ? NAN : x);
    }
    if (t == 0) CLA_REPORT
#if VECTORS
    if (t == 0) CLA_AFTER(states, team) = bad;
    GATHER
    for (int k = get_local_id(0); k < TEAMS * N * N; k += GROUP) {
        const int some = k / (N * N), i = k / N % N, j = k % N, bad = CLA_AFTER(states, some);
        const cla_lane x = IN_GLOBAL ? a[orders[j] * LINE + i] : matrices[some * MATRIX + i * LINE + orders[some * N + j]];
        if (first + some < nm) cla_put(X, first * (N * N) + k, CLA_CHECKED(x));
    }
#endif
}
