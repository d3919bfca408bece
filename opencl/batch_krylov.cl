/* Krylov methods for batches of small systems, and what they are preconditioned by: a work-group has a team (team.h) for
 * each of CLA_TEAM_LANES lanes, and takes all lanes in turns. The methods are those of `compactla.krylov_methods`, word
 * by word; what is a vector of systems there is a number of the lane here, the same for all members of its team.
 *
 * Define PRECONDITIONER, which krylov_system.h explains, and PRECONDITION_BATCH to apply it, or the transpose with TRANS 1,
 * and the conjugate one with TRANS 2, of factors; or CG_BATCH, BICGSTAB_BATCH or GMRES_BATCH, with LEFT 1 to precondition
 * from the left.
 */
#include "krylov_system.h"

#ifndef TRANS
#define TRANS 0
#endif
#ifndef LEFT
#define LEFT 0
#endif
#define GROUP_OF_TEAMS __attribute__((reqd_work_group_size(CLA_TEAM_LANES, CLA_TEAM, 1)))

#ifdef PRECONDITION_BATCH
__kernel GROUP_OF_TEAMS void precondition_batch(
    long lanes, long n, long nrhs, long b,
    __global const long *mptr, __global const int *mindices, __global const int *diagonal,
    __global const int *levels, __global const int *order, __global const int *places,
    CLA_VIEW(const CLA_REAL *m, m),
    CLA_VIEW(const CLA_REAL *x, x),
    CLA_VIEW(CLA_REAL *y, y))
{
    __local cla_lane room[CLA_TEAM * CLA_TEAM_LANES];
    cla_system S;
    S.n = n;
    S.b = b;
    const cla_csr_factors M = {{0}, mptr, mindices, diagonal, levels, order, places, TRANS != 0};
    S.M = M;
    S.room = room;
    for (long q = get_global_id(0); q < lanes; q += get_global_size(0)) {
        S.M.values = CLA_MATRIX(m, m, q, TRANS == 2);
        const cla_matrix X = CLA_MATRIX(x, x, q, 0);
        precondition(S, nrhs, X, CLA_MATRIX(y, y, q, 0));
    }
}
#else

#if defined(GMRES_BATCH)
CLA_INLINE CLA_REAL solve(cla_system S, cla_limits most, cla_matrix X, cla_progress *at)
{
    int is_new = 1;
    /* In H are a triangle of so many columns, and below it rotations, right-hand sides, solutions, a column to be. */
    const int m = most.restart, cosine = m, sine = m + 1, right = m + 2, solution = m + 3, column = m + 4;
    const cla_matrix R = vector(S, 0), Z = vector(S, m + 1);
    while (goes_on(S, most, X, R, at)) {
        int running = at->going, kept = 0, more = 1;
        CLA_REAL largest = 0, first = at->size;
        if (LEFT) {
            precondition(S, 1, R, Z);
            copy(S, Z, R);
            first = norm(S, R);
        }
        const int whole = running && first > 0 && first < INFINITY;
        const CLA_REAL share = whole ? at->size / first : 0; /* norms of residuals over those that are known */
        cla_lane last = cla_lane_real(first); /* of the right-hand sides */
        scale(S, R, whole ? 1 / first : 0);
        for (int j = 0; more; j++) {
            const cla_matrix V = vector(S, j + 1);
#if LEFT
            apply(S, 1, vector(S, j), Z);
            precondition(S, 1, Z, V);
#else
            precondition(S, 1, vector(S, j), Z);
            apply(S, 1, Z, V);
#endif
            CLA_REAL length = norm(S, V);
            if (is_new && running) {
                S.of_a = inverse(length, MANY);
                divide_a(S, X, V);
                length *= S.of_a;
            }
            is_new = 0;
            largest = cla_lane_maximum(largest, length);
            const CLA_REAL least = 8 * most.eps * largest;
            for (int pass = 0; pass < max(most.ortho, 1); pass++) {
                for (int i = 0; i <= j; i++) {
                    const cla_lane h = dot(S, vector(S, i), V);
                    enter(S, column, i, pass ? cla_get(S.H, column, i) + h : h);
                    if (most.ortho) enter(S, solution, i, h);
                    else if (running) add(S, V, CLA_MINUS(h), vector(S, i));
                }
                cla_team_sync();
                if (most.ortho && running)
                    for (int i = 0; i <= j; i++) add(S, V, CLA_MINUS(cla_get(S.H, solution, i)), vector(S, i));
            }
            CLA_REAL below = norm(S, V);
            below = below > least ? below : 0;
            scale(S, V, below > 0 ? 1 / below : 0);
            cla_lane x = cla_get(S.H, column, 0);
            for (int i = 0; i < j; i++) {
                const cla_lane c = cla_get(S.H, cosine, i), y = cla_get(S.H, column, i + 1);
                const CLA_REAL s = cla_lane_re(cla_get(S.H, sine, i));
                enter(S, i, j, cla_lane_mul(cla_lane_conj(c), x) + y * s);
                x = cla_lane_mul(c, y) - x * s;
            }
            const CLA_REAL modulus = cla_lane_abs(x), r = cla_lane_sqrt(modulus * modulus + below * below);
            running = running && r > least && r < INFINITY;
            const cla_lane c = x / r;
            enter(S, cosine, j, c);
            enter(S, sine, j, cla_lane_real(below / r));
            enter(S, j, j, cla_lane_real(r));
            enter(S, right, j, cla_lane_mul(cla_lane_conj(c), last));
            last = last * CLA_MINUS(below / r);
            const CLA_REAL size = cla_lane_abs(last) * share;
            if (running) {
                kept++;
                record(S, ++at->count, size);
            }
            running = running && size > at->limit && at->count < most.maxiter;
            more = any(S, running) && j + 1 < m;
        }
        for (int i = kept - 1; i >= 0 && cla_team_member() == 0; i--) {
            cla_lane y = cla_get(S.H, right, i);
            for (int k = i + 1; k < kept; k++) y = cla_lane_fnma(cla_get(S.H, i, k), cla_get(S.H, solution, k), y);
            cla_set(S.H, solution, i, y / cla_lane_re(cla_get(S.H, i, i)));
        }
        cla_team_sync();
        EACH_ROW(i) cla_set(Z, i, 0, cla_lane_real(0));
        for (int k = 0; k < kept; k++) add(S, Z, cla_get(S.H, solution, k), vector(S, k));
        if (LEFT) copy(S, Z, vector(S, 1));
        else precondition(S, 1, Z, vector(S, 1));
        if (kept) add(S, X, cla_lane_real(1), vector(S, 1));
    }
    return S.of_a;
}

#elif defined(BICGSTAB_BATCH)
/* A round of the inner loop is half a step: alpha is <shadow, R> / <shadow, Q>, and omega <T, R> / <T, T>. */
CLA_INLINE CLA_REAL solve(cla_system S, cla_limits most, cla_matrix X, cla_progress *at)
{
    int is_new = 1;
    const cla_matrix R = vector(S, 0), P = vector(S, 1), Q = vector(S, 2), Z = vector(S, 3), T = vector(S, 4);
    const cla_matrix shadow = vector(S, 5);
    while (goes_on(S, most, X, R, at)) {
        int running = at->going, second = 0;
        cla_lane rho = cla_lane_real(1), alpha = rho;
        copy(S, R, shadow);
        copy(S, R, P);
        while (any(S, running)) {
            const cla_matrix V = second ? T : Q, left = second ? T : shadow;
            precondition(S, 1, second ? R : P, Z);
            apply(S, 1, Z, V);
            const cla_lane above = dot(S, left, R);
            cla_lane below = dot(S, left, V);
            if (is_new && running) {
                S.of_a = inverse(cla_lane_abs1(below) / (at->size * at->size), MANY);
                divide_a(S, X, V);
                below = below * S.of_a;
            }
            is_new = 0;
            const cla_lane step = second ? above / cla_lane_re(below) : quotient(above, below);
            running = running && cla_lane_abs1(step) > 0 && cla_lane_abs1(step) < INFINITY;
            if (running) {
                at->count += !second;
                add(S, X, step, Z);
                add(S, R, CLA_MINUS(step), V);
            }
            const CLA_REAL size = norm(S, R);
            if (running) record(S, at->count, size);
            running = running && size > at->limit && size < INFINITY;
            const cla_lane after = dot(S, shadow, R);
            if (second) {
                const cla_lane beta = cla_lane_mul(quotient(after, rho), quotient(alpha, step));
                running = running && at->count < most.maxiter && cla_lane_abs1(beta) < INFINITY;
                add(S, P, CLA_MINUS(step), Q);
                combine(S, P, beta, R);
            } else {
                rho = above;
                alpha = step;
            }
            second = !second;
        }
    }
    return S.of_a;
}

#else /* CG_BATCH */
CLA_INLINE CLA_REAL solve(cla_system S, cla_limits most, cla_matrix X, cla_progress *at)
{
    int is_new = 1;
    CLA_REAL of_m = 1;
    const cla_matrix R = vector(S, 0), P = vector(S, 1), Q = vector(S, 2), Z = vector(S, 3);
    while (goes_on(S, most, X, R, at)) {
        int running = at->going, is_first = 1;
        CLA_REAL rho = 1;
        while (any(S, running)) {
            precondition(S, 1, R, Z);
            if (of_m != 1) scale(S, Z, of_m);
            CLA_REAL after = cla_lane_re(dot(S, R, Z));
            if (is_new && running) {
                of_m = inverse(fabs(after) / (at->size * at->size), MANY);
                if (of_m != 1) scale(S, Z, of_m);
                after *= of_m;
            }
            if (is_first) copy(S, Z, P);
            else combine(S, P, cla_lane_real(after / rho), Z);
            rho = after;
            is_first = 0;
            apply(S, 1, P, Q);
            CLA_REAL sigma = cla_lane_re(dot(S, P, Q));
            if (is_new && running) {
                S.of_a = inverse(fabs(sigma) / (at->size * at->size), MANY);
                divide_a(S, X, Q);
                sigma *= S.of_a;
            }
            is_new = 0;
            const CLA_REAL alpha = rho / sigma;
            running = running && fabs(alpha) < INFINITY;
            if (running) {
                at->count++;
                add(S, X, cla_lane_real(alpha), P);
                add(S, R, cla_lane_real(CLA_MINUS(alpha)), Q);
            }
            const CLA_REAL size = norm(S, R);
            if (running) record(S, at->count, size);
            running = running && size > at->limit && size < INFINITY && at->count < most.maxiter;
        }
    }
    return S.of_a;
}
#endif

/* x, contiguous packs, is what to start with, if there is a start, and the solution. `results` has counts, norms of
 * residuals, whether these are what they had to be, and the unit of `past`, the norms after so many steps; in `work` is
 * room for each group. */
__kernel GROUP_OF_TEAMS void solve_batch(
    long lanes, long n, long b, long start, long maxiter, long restart, long ortho, long vectors, long steps, long size,
    CLA_REAL rtol, CLA_REAL atol, CLA_REAL eps, __global const long *indptr, __global const int *indices,
    __global const long *mptr, __global const int *mindices, __global const int *diagonal,
    __global const int *levels, __global const int *order, __global const int *places,
    CLA_VIEW(const CLA_REAL *a, a),
    CLA_VIEW(const CLA_REAL *m, m),
    CLA_VIEW(const CLA_REAL *rhs, b),
    __global CLA_REAL *x, __global CLA_REAL *results, __global CLA_REAL *past, __global CLA_REAL *work)
{
    __local cla_lane room[CLA_TEAM * CLA_TEAM_LANES];
    __local int flags[CLA_TEAM_LANES];
    const long step = CLA_TEAM_LANES * CLA_PARTS;
    const cla_limits most = {maxiter, restart, ortho, eps};
    cla_system S;
    S.n = n;
    S.b = b;
    S.indptr = indptr;
    S.indices = indices;
    const cla_csr_factors M = {{0}, mptr, mindices, diagonal, levels, order, places, 0};
    S.M = M;
    S.room = room;
    S.flags = flags;
    S.W = cla_matrix_at(work + get_group_id(0) * size * step + get_local_id(0), step, step);
    S.W.im = CLA_TEAM_LANES;
    S.H = cla_from(S.W, (vectors + 1) * n, 0);
    S.H.rs = (restart + 1) * step;
    for (long q = get_global_id(0); q < lanes; q += get_global_size(0)) {
        const cla_matrix given = cla_matrix_of_batch(x, q, n, 1), X = vector(S, vectors);
        __global CLA_REAL *const found = results + cla_lane_place(q, 4 * CLA_VLEN);
        S.A = CLA_MATRIX(a, a, q, 0);
        S.M.values = CLA_MATRIX(m, m, q, 0);
        S.B = CLA_MATRIX(rhs, b, q, 0);
        S.history = steps ? past + cla_lane_place(q, steps * CLA_VLEN) : 0;
        const CLA_REAL whole = norm(S, S.B);
        S.of_b = inverse(whole, FEW);
        S.of_a = 1;
        cla_progress at = {1, start, 0, 0, -1, whole * S.of_b, 0, 0};
        at.limit = cla_lane_maximum(rtol * at.whole, atol * S.of_b);
        cla_lane none = cla_lane_real(0); /* unless x is not finite */
        EACH_ROW(i) {
            none = none + cla_get(given, i, 0) * 0;
            cla_set(X, i, 0, cla_get(given, i, 0) * S.of_b);
        }
        at.given = start && cla_lane_is_zero(cla_team_sum(S.room, CLA_TEAM, none));
        const CLA_REAL of_a = solve(S, most, X, &at);
        EACH_ROW(i) cla_set(given, i, 0, cla_get(X, i, 0) * (1 / S.of_b) * of_a);
        if (cla_team_member() == 0) {
            found[0] = at.count;
            found[CLA_VLEN] = at.size / S.of_b;
            found[2 * CLA_VLEN] = at.size <= at.limit && at.size < INFINITY;
            found[3 * CLA_VLEN] = 1 / S.of_b;
        }
    }
}
#endif
