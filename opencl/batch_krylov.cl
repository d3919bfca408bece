/* Krylov methods for batches of small systems, and what they are preconditioned by: a team of work-items (team.h) has a
 * system, and a work-group those of CLA_TEAM_LANES lanes, which it takes in turns. The methods are those of
 * `compactla.krylov_methods`, word by word. What is a vector of systems there is a number of the lane here, the same for
 * all members of its team. Each member changes rows member, member + CLA_TEAM, ... of vectors only.
 *
 * PRECONDITIONER: 0 none, 1 factors, 2 blocks on the diagonal, 3 a sparse matrix. Define PRECONDITION_BATCH to apply
 * it, or the transpose with TRANS 1, and the conjugate one with TRANS 2, of factors; or CG_BATCH, BICGSTAB_BATCH or
 * GMRES_BATCH.
 */
#include "blockmv.cl"
#include "csrmm.cl"
#include "csrsv.cl"
#include "householder.h"

#ifndef TRANS
#define TRANS 0
#endif
#define GROUP_OF_TEAMS __attribute__((reqd_work_group_size(CLA_TEAM_LANES, CLA_TEAM, 1)))
#define EACH_ROW(i) for (int i = cla_team_member(); i < S.n; i += CLA_TEAM)

/* A system, and the room of its team. */
typedef struct {
    int n, b;
    cla_matrix A, B, W, H;
    __global const long *indptr; /* of A */
    __global const int *indices;
    cla_csr_factors M; /* or what else is a preconditioner, by its values */
    CLA_REAL of_b, of_a; /* what b and residuals, and what A makes, are multiplied by, powers of two */
    __global CLA_REAL *history; /* of this lane, or nothing */
    CLA_LOCAL cla_lane *room;
    CLA_LOCAL int *flags;
} cla_system;

/* Y <- M X */
CLA_INLINE void precondition(cla_system S, int nrhs, cla_matrix X, cla_matrix Y)
{
    cla_team_sync();
#if PRECONDITIONER == 1
    cla_csrlusv(S.n, nrhs, S.M, X, Y, S.room);
#elif PRECONDITIONER == 2
    cla_blockmv(S.n, nrhs, S.b, S.M.values, X, Y, cla_team_member(), CLA_TEAM);
#elif PRECONDITIONER == 3
    cla_csrmm(S.n, nrhs, S.M.values, S.M.indptr, S.M.indices, 0, cla_lane_real(1), cla_lane_real(0), X, Y,
              cla_team_member(), CLA_TEAM);
#else
    EACH_ROW(i)
    for (int j = 0; j < nrhs; j++) cla_set(Y, i, j, cla_get(X, i, j));
#endif
    cla_team_sync();
}

#ifdef PRECONDITION_BATCH
__kernel GROUP_OF_TEAMS void precondition_batch(
    long lanes, long n, long nrhs, long b,
    __global const long *mptr, __global const int *mindices, __global const int *diagonal,
    __global const int *levels, __global const int *order, __global const int *places,
    __global const CLA_REAL *m, long m0, long mps, long mrs, long mcs,
    __global const CLA_REAL *x, long x0, long xps, long xrs, long xcs,
    __global CLA_REAL *y, long y0, long yps, long yrs, long ycs)
{
    __local cla_lane room[CLA_TEAM * CLA_TEAM_LANES];
    cla_system S;
    S.n = n;
    S.b = b;
    const cla_csr_factors M = {{0}, mptr, mindices, diagonal, levels, order, places, TRANS != 0};
    S.M = M;
    S.room = room;
    for (long q = get_global_id(0); q < lanes; q += get_global_size(0)) {
        S.M.values = cla_matrix_of_packs(m, q, m0, mps, mrs, mcs, TRANS == 2);
        const cla_matrix X = cla_matrix_of_packs(x, q, x0, xps, xrs, xcs, 0);
        precondition(S, nrhs, X, cla_matrix_of_packs(y, q, y0, yps, yrs, ycs, 0));
    }
}
#else

/* Y <- alpha A X, scaled, where alpha is 1, or 0 for an X of zeros, with which A is not read */
CLA_INLINE void apply(cla_system S, int alpha, cla_matrix X, cla_matrix Y)
{
    cla_team_sync();
    cla_csrmm(S.n, 1, S.A, S.indptr, S.indices, 0, cla_lane_real(alpha ? S.of_a : 0), cla_lane_real(0), X, Y,
              cla_team_member(), CLA_TEAM);
    cla_team_sync();
}

CLA_INLINE cla_matrix vector(cla_system S, int k) { return cla_from(S.W, k * S.n, 0); }

/* Whether it is so in any lane of the group, if lanes have to go together. */
CLA_INLINE int any(cla_system S, int yes)
{
#if CLA_TEAM > 1
    barrier(CLK_LOCAL_MEM_FENCE);
    if (cla_team_member() == 0) S.flags[get_local_id(0)] = yes;
    barrier(CLK_LOCAL_MEM_FENCE);
    yes = 0;
    for (int lane = 0; lane < CLA_TEAM_LANES; lane++) yes |= S.flags[lane];
#endif
    return yes;
}

CLA_INLINE cla_lane dot(cla_system S, cla_matrix X, cla_matrix Y)
{
    cla_lane sum = cla_lane_real(0);
    EACH_ROW(i) sum = cla_lane_fma(cla_lane_conj(cla_get(X, i, 0)), cla_get(Y, i, 0), sum);
    return cla_team_sum(S.room, CLA_TEAM, sum);
}

CLA_INLINE CLA_REAL sum_of_squares(cla_system S, cla_matrix X, CLA_REAL scale)
{
    CLA_REAL sum = 0;
    EACH_ROW(i) sum = cla_add_square(cla_get(X, i, 0) * scale, sum);
    return cla_lane_re(cla_team_sum(S.room, CLA_TEAM, cla_lane_real(sum)));
}

/* The 2-norm; no square overflows or underflows. Barriers are in loops, not under conditions, of which PoCL copies all
 * that follows for either case. */
CLA_INLINE CLA_REAL norm(cla_system S, cla_matrix X)
{
    CLA_REAL squares, scale = 1, found = 1;
    int passes = 1;
    for (int pass = 0; pass < passes; pass++) {
        scale = found;
        squares = sum_of_squares(S, X, scale);
        if (pass == 0) found = cla_scale_of(cla_lane_real(0), squares);
        passes = 1 + any(S, found != 1);
    }
    return cla_lane_sqrt(squares) * (scale > 1 ? 1 / CLA_RANGE : scale < 1 ? CLA_RANGE : 1);
}

/* Y <- Y + a X */
CLA_INLINE void add(cla_system S, cla_matrix Y, cla_lane a, cla_matrix X)
{
    EACH_ROW(i) cla_set(Y, i, 0, cla_lane_fma(a, cla_get(X, i, 0), cla_get(Y, i, 0)));
}

/* P <- R + a P */
CLA_INLINE void combine(cla_system S, cla_matrix P, cla_lane a, cla_matrix R)
{
    EACH_ROW(i) cla_set(P, i, 0, cla_lane_fma(a, cla_get(P, i, 0), cla_get(R, i, 0)));
}

CLA_INLINE void scale(cla_system S, cla_matrix X, CLA_REAL a) { EACH_ROW(i) cla_set(X, i, 0, cla_get(X, i, 0) * a); }
CLA_INLINE void copy(cla_system S, cla_matrix X, cla_matrix Y) { EACH_ROW(i) cla_set(Y, i, 0, cla_get(X, i, 0)); }

/* Scales x, and the first product Y with A, once it is known how. */
CLA_INLINE void divide_a(cla_system S, cla_matrix X, cla_matrix Y)
{
    if (S.of_a != 1) EACH_ROW(i) {
        cla_set(X, i, 0, cla_get(X, i, 0) * (1 / S.of_a));
        cla_set(Y, i, 0, cla_get(Y, i, 0) * S.of_a);
    }
}

/* R <- a B - R */
CLA_INLINE void subtract(cla_system S, cla_matrix B, CLA_REAL a, cla_matrix R)
{
    EACH_ROW(i) cla_set(R, i, 0, cla_get(B, i, 0) * a - cla_get(R, i, 0));
}

#define FEW (sizeof(CLA_REAL) == 4 ? 4 : 32) /* powers of two that b may be from one, */
#define MANY (4 * FEW) /* and what A or M makes, which it takes a pass over each product to change */

/* The inverse of a power of two that is near to a size; 1 if that is within 2^most, zero or not finite. */
CLA_INLINE CLA_REAL inverse(CLA_REAL size, int most)
{
    const int largest = sizeof(CLA_REAL) == 4 ? 126 : 1022;
    const int power = size > 0 && size < INFINITY ? ilogb(size) + 1 : 0;
    return abs(power) <= most ? 1 : ldexp((CLA_REAL)1, max(-largest, min(largest, -power)));
}

CLA_INLINE void record(cla_system S, int count, CLA_REAL size)
{
    if (S.history && cla_team_member() == 0) S.history[(long)count * CLA_VLEN] = size;
}

CLA_INLINE cla_lane quotient(cla_lane a, cla_lane b)
{
    return CLA_COMPLEX ? cla_lane_mul(a, cla_lane_recip(b)) : a / b;
}

/* An element of the table of gmres, which the first of a team writes. */
CLA_INLINE void enter(cla_system S, int i, int j, cla_lane a)
{
    if (cla_team_member() == 0) cla_set(S.H, i, j, a);
}

/* How far a system has come. */
typedef struct {
    int going, moved, given; /* whether it goes on, whether x is not zero, and whether it begins with finite numbers */
    int count, before; /* steps, and those when it began anew */
    CLA_REAL whole, limit, size; /* of b, and of the residual what it has to be, and what it is */
} cla_progress;

/* What a method is told. */
typedef struct {
    int maxiter, restart, ortho;
    CLA_REAL eps;
} cla_limits;

/* Computes the residual; systems go on if they have come nearer, and not there. Whether any does. X becomes zero where b
 * is, or is lost in what is rounded. */
CLA_INLINE int goes_on(cla_system S, cla_limits most, cla_matrix X, cla_matrix R, cla_progress *at)
{
    apply(S, at->moved, X, R);
    subtract(S, S.B, S.of_b, R);
    at->size = norm(S, R);
    if (at->before < 0 && at->given && (!(at->size <= at->limit || most.eps * at->size <= at->whole) ||
                                        (at->whole == 0 && at->limit == 0))) {
        EACH_ROW(i) {
            cla_set(X, i, 0, cla_lane_real(0));
            cla_set(R, i, 0, cla_get(S.B, i, 0) * S.of_b);
        }
        at->size = at->whole;
    }
    if (at->going) record(S, at->count, at->size);
    at->going = at->going && at->count > at->before && at->size > at->limit && at->size < INFINITY;
    at->going = at->going && at->count < most.maxiter;
    at->before = at->count;
    at->moved = 1;
    return any(S, at->going);
}

#ifdef CG_BATCH
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

#ifdef BICGSTAB_BATCH
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
#endif

#ifdef GMRES_BATCH
CLA_INLINE CLA_REAL solve(cla_system S, cla_limits most, cla_matrix X, cla_progress *at)
{
    int is_new = 1;
    /* In H are a triangle of so many columns, and below it rotations, right-hand sides, solutions, a column to be. */
    const int m = most.restart, cosine = m, sine = m + 1, right = m + 2, solution = m + 3, column = m + 4;
    const cla_matrix R = vector(S, 0), Z = vector(S, m + 1);
    while (goes_on(S, most, X, R, at)) {
        int running = at->going, kept = 0, more = 1;
        CLA_REAL largest = 0;
        cla_lane last = cla_lane_real(at->size); /* of the right-hand sides */
        scale(S, R, at->going ? 1 / at->size : 0);
        for (int j = 0; more; j++) {
            const cla_matrix V = vector(S, j + 1);
            precondition(S, 1, vector(S, j), Z);
            apply(S, 1, Z, V);
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
            const CLA_REAL size = cla_lane_abs(last);
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
        precondition(S, 1, Z, vector(S, 1));
        if (kept) add(S, X, cla_lane_real(1), vector(S, 1));
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
    __global const CLA_REAL *a, long a0, long aps, long ars, long acs,
    __global const CLA_REAL *m, long m0, long mps, long mrs, long mcs,
    __global const CLA_REAL *rhs, long b0, long bps, long brs, long bcs,
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
        S.A = cla_matrix_of_packs(a, q, a0, aps, ars, acs, 0);
        S.M.values = cla_matrix_of_packs(m, q, m0, mps, mrs, mcs, 0);
        S.B = cla_matrix_of_packs(rhs, q, b0, bps, brs, bcs, 0);
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
