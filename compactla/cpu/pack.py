"""Copies between ordinary arrays and the compact layout. Addresses and the strides of ordinary arrays count bytes."""

import numpy as np

from compactla.cpu.lanes import KINDS, peek, poke


def transfer_batch(real, packing, identity):
    """Kernel that packs or unpacks packs lo to hi, of `parts` = 1 (real) or 2 (complex) numbers an element.

    Packing sets element (i, j) of the unused lanes to `unit` where i % period == j, else to 0.
    """
    item, zero = KINDS[real].bitwidth // 8, np.dtype(real).type(0)

    def kernel(lo, hi, V, nm, m, n, parts, period, unit, s, sq, si, sj, a, ap, ar, ac):
        for p in range(lo, hi):
            used = min(V, nm - p * V)
            for i in range(m):
                for j in range(n):
                    for part in range(parts):
                        lanes = a + (p * ap + i * ar + j * ac + part * V) * item
                        matrix = s + p * V * sq + i * si + j * sj + part * item
                        if packing:
                            for v in range(used):
                                poke(lanes + v * item, peek(matrix + v * sq, real))
                            x = unit if i % period == j and part == 0 else zero
                            for v in range(used, V):
                                poke(lanes + v * item, x)
                        else:
                            for v in range(used):
                                poke(matrix + v * sq, peek(lanes + v * item, real))
        return identity

    return kernel


def gather_batch(real, identity):
    """Kernel that fills slots lo to hi of lines with b x b blocks of a sparse matrix's values.

    Element (i, j) in lane v of slot s is ``source[index * scale + i * si + j * sj]`` with the index at
    ``s * xs + i * xi + j * xj + v``; index -1 stands for a zero, -2 for an element of the identity.
    """
    item, zero = KINDS[real].bitwidth // 8, np.dtype(real).type(0)

    def kernel(lo, hi, V, b, parts, one, source, scale, si, sj, index, xs, xi, xj, target):
        for s in range(lo, hi):
            for i in range(b):
                for j in range(b):
                    for part in range(parts):
                        lanes = target + ((((s * b + i) * b + j) * parts + part) * V) * item
                        for v in range(V):
                            x = index[s * xs + i * xi + j * xj + v]
                            if x >= 0:
                                value = peek(source + ((x * scale + i * si + j * sj) * parts + part) * item, real)
                            else:
                                value = one if x == -2 and i == j and part == 0 else zero
                            poke(lanes + v * item, value)
        return identity

    return kernel
