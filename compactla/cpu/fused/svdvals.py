"""svdvals: as svd, without vectors."""

from compactla.cpu.fused.svd import decompose


def svdvals(code, vector, A, s, status, wide):
    """s <- singular values of A, in descending order"""
    _, values, _ = decompose(code, vector, A, status, wide)
    s.write(values)
