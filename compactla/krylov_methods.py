"""The methods, each written once: Numba compiles it for V systems at a time, and NumPy runs it for a user's functions.

A factory gets the words that a method is written in (`compactla.cpu.kernels.krylov` or `compactla.krylov.plain`) and
returns a function ``iterate(A, M, B, X, W, H, history, out, start, maxiter, rtol, atol, restart, ortho)``. It improves
X and puts into `out`, for each system, its iterations, the norm of its residual, whether that is what it had to be, and
the unit of `history`.

Numbers of V systems are vectors, of which each lane is a system. X and counts change in the lanes of a mask only:
systems that are done are left alone. One that seems to have converged is checked by its true residual, when all those
beside it are done, or as far, too; if it has not, it goes on from there with a fresh start.
"""

import math


def ends(words, eps, exponents):
    """The start of the methods, their products, and their end or restart.

    Numbers are kept near one by powers of two, which change no digit: b and residuals are multiplied by ``b``, what A
    makes by ``a``, and X by the quotient. `exponents` are those of the type.
    """
    add, apply, copy, keep, maximum, norm = words.add, words.apply, words.copy, words.keep, words.maximum, words.norm
    number, record, scale, select, subtract = words.number, words.record, words.scale, words.select, words.subtract
    follow, precondition = words.follow, words.precondition
    infinity = math.inf
    powers = tuple(2.0 ** (exponents >> shift) for shift in range(1, exponents.bit_length()))
    few = 2.0 ** (exponents // 32)  # how far b may be from one
    many = 2.0 ** (exponents // 8)  # and what A makes, and M in cg, which it takes a pass over each product to change

    def inverse(size, most):
        """Powers of two near to the inverses of sizes; 1 for those that are moderate, zero or not finite."""
        one = number(1.0, size)
        found, rest = one, select((size > 0) & (size < infinity), size, one)
        moderate = (rest < most) & (rest * most > 1)
        if not moderate.all():
            for power in powers:
                factor = select(rest > power, one / power, select(rest * power < 1, power * one, one))
                found, rest = found * factor, rest * factor
            found = select(moderate, one, found)
        return found

    def resize(X, by):
        if (by != 1).any():
            scale(X, by)

    def begin(A, B, X, R, history, start, maxiter, rtol, atol):
        """The goal for norms of residuals, and R, for which there is no product if X is zero.

        X becomes zero where B is, as it would come ever nearer to that, but not there, and where B is lost in what is
        rounded of the residual.
        """
        whole = norm(B)
        b = inverse(whole, few)
        whole = whole * b
        limit = maximum(rtol * whole, atol * b)
        if start:
            finite = norm(X) < infinity
            resize(X, b)
            apply(A, X, R)
            subtract(B, b, R)
            size = norm(R)
            useful = ((size <= limit) | (eps * size <= whole)) & ((whole > 0) | (limit > 0)) | ~finite
            if not useful.all():
                keep(useful, X)
                keep(useful, R)
                add(~useful, R, b, B)
                size = select(useful, size, whole)
        else:
            copy(B, R)
            resize(R, b)
            size = whole
        count = number(0.0, size)
        record(history, count, size, limit == limit)
        return b, limit, count, size, (size > limit) & (size < infinity) & (count < maxiter)

    def multiply(A, a, X, Y):
        apply(A, X, Y)
        resize(Y, a)

    def through(A, a, M, X, Z, Y):
        """Z <- M X, and Y <- A Z, for which M may know a shorter way."""
        precondition(M, X, Z)
        follow(A, M, X, Z, Y)
        resize(Y, a)

    def measure(size, running):
        """The power of two for A or M, by how large its first product is where systems are running."""
        return inverse(select(running, size, number(1.0, size)), many)

    def finish(A, a, B, b, X, R, history, going, before, count, limit, maxiter):
        """R and its norm, and the systems that go on: if they have come nearer, and not there."""
        multiply(A, a, X, R)
        subtract(B, b, R)
        size = norm(R)
        record(history, count, size, going)
        return size, going & (count > before) & (size > limit) & (size < infinity) & (count < maxiter)

    def leave(out, X, a, b, count, size, limit):
        unit, zero = 1 / b, number(0.0, size)
        resize(X, unit)
        resize(X, a)
        out[0, 0], out[1, 0], out[3, 0] = count, size * unit, unit
        out[2, 0] = select((size <= limit) & (size < infinity), unit * b, zero)

    inverse, resize, multiply, through = map(words.compiled, (inverse, resize, multiply, through))
    return (*map(words.compiled, (begin, measure, finish, leave)), multiply, through, resize)


def cg(words, eps, exponents):
    """Conjugate gradients, for Hermitian positive definite A and M."""
    begin, measure, finish, leave, multiply, _, resize = ends(words, eps, exponents)
    add, combine, copy, dot, norm = words.add, words.combine, words.copy, words.dot, words.norm
    number, precondition, record = words.number, words.precondition, words.record
    select, vector = words.select, words.vector
    infinity = math.inf

    def iterate(A, M, B, X, W, H, history, out, start, maxiter, rtol, atol, restart, ortho):
        R, P, Q, Z = vector(W, 0), vector(W, 1), vector(W, 2), vector(W, 3)
        b, limit, count, size, going = begin(A, B, X, R, history, start, maxiter, rtol, atol)
        a, m, is_new = number(1.0, size), number(1.0, size), True
        while going.any():
            running, before = going, count
            precondition(M, R, Z)
            rho = dot(R, Z).real
            if is_new:
                m = measure(abs(rho) / (size * size), running)
            rho = rho * m
            resize(Z, m)
            copy(Z, P)
            while running.any():
                multiply(A, a, P, Q)
                sigma = dot(P, Q).real
                if is_new:
                    a, is_new = measure(abs(sigma) / (size * size), running), False
                    resize(X, 1 / a)
                    resize(Q, a)
                    sigma = sigma * a
                alpha = rho / sigma
                running = running & (abs(alpha) < infinity)
                count = select(running, count + 1, count)
                add(running, X, alpha, P)
                add(running, R, -alpha, Q)
                size = norm(R)
                record(history, count, size, running)
                running = running & (size > limit) & (size < infinity) & (count < maxiter)
                if not running.any():
                    break
                precondition(M, R, Z)
                resize(Z, m)
                after = dot(R, Z).real
                combine(P, after / rho, Z)
                rho = after
            size, going = finish(A, a, B, b, X, R, history, going, before, count, limit, maxiter)
        leave(out, X, a, b, count, size, limit)

    return iterate


def bicgstab(words, eps, exponents):
    """Stabilized bi-conjugate gradients, for any A; a step that ends half way, since it is there, counts as one."""
    begin, measure, finish, leave, _, through, resize = ends(words, eps, exponents)
    add, combine, copy, dot, norm = words.add, words.combine, words.copy, words.dot, words.norm
    abs1, number, record, select, vector = words.abs1, words.number, words.record, words.select, words.vector
    infinity = math.inf

    def iterate(A, M, B, X, W, H, history, out, start, maxiter, rtol, atol, restart, ortho):
        R, P, Q, Z = vector(W, 0), vector(W, 1), vector(W, 2), vector(W, 3)
        T, shadow = vector(W, 4), vector(W, 5)
        b, limit, count, size, going = begin(A, B, X, R, history, start, maxiter, rtol, atol)
        a, is_new = number(1.0, size), True
        while going.any():
            running, before = going, count
            copy(R, shadow)
            copy(R, P)
            rho = dot(shadow, R)
            while running.any():
                through(A, a, M, P, Z, Q)
                sigma = dot(shadow, Q)
                if is_new:
                    a, is_new = measure(abs1(sigma) / (size * size), running), False
                    resize(X, 1 / a)
                    resize(Q, a)
                    sigma = sigma * a
                alpha = rho / sigma
                running = running & (abs1(alpha) > 0) & (abs1(alpha) < infinity)
                count = select(running, count + 1, count)
                add(running, X, alpha, Z)
                add(running, R, -alpha, Q)
                size = norm(R)
                record(history, count, size, running)
                running = running & (size > limit) & (size < infinity)
                if not running.any():
                    break
                through(A, a, M, R, Z, T)
                omega = dot(T, R) / dot(T, T).real
                running = running & (abs1(omega) > 0) & (abs1(omega) < infinity)
                add(running, X, omega, Z)
                add(running, R, -omega, T)
                size = norm(R)
                record(history, count, size, running)
                after = dot(shadow, R)
                beta = (after / rho) * (alpha / omega)
                running = running & (size > limit) & (size < infinity) & (count < maxiter) & (abs1(beta) < infinity)
                add(running, P, -omega, Q)
                combine(P, beta, R)
                rho = after
            size, going = finish(A, a, B, b, X, R, history, going, before, count, limit, maxiter)
        leave(out, X, a, b, count, size, limit)

    return iterate


def gmres(words, eps, exponents, left=False):
    """The generalized minimal residual, for any A, which starts anew from where it is after `restart` steps.

    Preconditioned from the right, or from the `left`: then norms of M r are known in each step, and those of r taken to
    be in proportion since the last start, from which on it goes if that was wrong.

    `ortho` says how a vector is made orthogonal to those before it: 0, to one after the other, 1, to all at once, 2,
    twice. What remains of it counts as nothing below 8 `eps` times the largest product with A, and a system that is
    singular so far is left where it is.
    """
    begin, measure, finish, leave, multiply, through, resize = ends(words, eps, exponents)
    add, copy, scale, dot, norm, number = words.add, words.copy, words.scale, words.dot, words.norm, words.number
    clear, conj, record, select, sqrt, vector = (
        words.clear, words.conj, words.record, words.select, words.sqrt, words.vector
    )  # fmt: skip
    maximum, precondition = words.maximum, words.precondition
    infinity = math.inf

    def of_right(A, a, M, X, Z, Y):
        """Y <- A M X"""
        through(A, a, M, X, Z, Y)

    def of_left(A, a, M, X, Z, Y):
        """Y <- M A X"""
        multiply(A, a, X, Z)
        precondition(M, Z, Y)

    def first_right(M, R, Z, size):
        """The first vector, in R, and its norm."""
        return size

    def first_left(M, R, Z, size):
        precondition(M, R, Z)
        copy(Z, R)
        return norm(R)

    def solved_right(M, Z, V):
        """V <- the correction of X, from a combination Z of the vectors."""
        precondition(M, Z, V)

    def solved_left(M, Z, V):
        copy(Z, V)

    product, first, solved = map(
        words.compiled, (of_left, first_left, solved_left) if left else (of_right, first_right, solved_right)
    )

    def iterate(A, M, B, X, W, H, history, out, start, maxiter, rtol, atol, restart, ortho):
        # In H are a triangle of so many columns, and below it four rows: rotations, right-hand sides, solutions.
        C, S, G, Y = restart, restart + 1, restart + 2, restart + 3
        R, Z = vector(W, 0), vector(W, restart + 1)
        b, limit, count, size, going = begin(A, B, X, R, history, start, maxiter, rtol, atol)
        a, is_new = number(1.0, size), True
        zero = number(0.0, size)
        while going.any():
            running, before, kept, largest = going, count, zero, zero
            length = first(M, R, Z, size)
            whole = going & (length > 0) & (length < infinity)
            scale(R, select(whole, 1 / length, zero))
            H[G, 0] = length
            share = select(whole, size / length, zero)
            j = 0
            while j < restart and running.any():
                V = vector(W, j + 1)
                product(A, a, M, vector(W, j), Z, V)
                length = norm(V)
                if is_new:
                    a, is_new = measure(length, running), False
                    resize(X, 1 / a)
                    resize(V, a)
                    length = length * a
                largest = maximum(largest, length)
                least = 8 * eps * largest
                for i in range(j + 1):
                    H[i, j] = zero
                for _ in range(max(ortho, 1)):
                    for i in range(j + 1):
                        H[Y, i] = dot(vector(W, i), V)
                        H[i, j] = H[i, j] + H[Y, i]
                        if ortho == 0:
                            add(running, V, -H[Y, i], vector(W, i))
                    if ortho > 0:
                        for i in range(j + 1):
                            add(running, V, -H[Y, i], vector(W, i))
                below = norm(V)
                below = select(below > least, below, zero)
                scale(V, select(below > 0, 1 / below, zero))
                for i in range(j):
                    c, s, x, y = H[C, i], H[S, i].real, H[i, j], H[i + 1, j]
                    H[i, j] = conj(c) * x + s * y
                    H[i + 1, j] = c * y - s * x
                modulus = abs(H[j, j])
                r = sqrt(modulus * modulus + below * below)
                running = running & (r > least) & (r < infinity)
                c, s = H[j, j] / r, below / r
                H[C, j] = c
                H[S, j] = s
                H[j, j] = r
                H[G, j + 1] = -s * H[G, j]
                H[G, j] = conj(c) * H[G, j]
                kept, count = select(running, kept + 1, kept), select(running, count + 1, count)
                size = abs(H[G, j + 1]) * share
                record(history, count, size, running)
                running = running & (size > limit) & (count < maxiter)
                j += 1
            for i in range(j - 1, -1, -1):
                y = H[G, i]
                for k in range(i + 1, j):
                    y = select(kept > k, y - H[i, k] * H[Y, k], y)
                H[Y, i] = y / H[i, i]
            clear(Z)
            for i in range(j):
                add(kept > i, Z, H[Y, i], vector(W, i))
            solved(M, Z, vector(W, 1))
            add(kept > 0, X, number(1.0, zero), vector(W, 1))
            size, going = finish(A, a, B, b, X, R, history, going, before, count, limit, maxiter)
        leave(out, X, a, b, count, size, limit)

    return iterate


METHODS = {"cg": cg, "bicgstab": bicgstab, "gmres": gmres}
VECTORS = {"cg": 4, "bicgstab": 6}  # that work has, and for gmres two more than the basis has in the end
