"""BiCGSTAB in PyTorch, preconditioned along lines: ``python -m compactla.examples.torch_bicgstab --plot bicgstab.png``.

The matrix is that of a step of `compactla.examples.hot_wall`, whose cells are hundreds of times as long as high.
Matrix, vectors and factors are on a CUDA GPU, if there is one, and `P.solve` takes tensors there, in the stream of
PyTorch; on a CPU it works on the memory of tensors.
"""

import argparse
import time

import numpy as np
import torch

import compactla as cla
from compactla.examples.beside import drawing
from compactla.examples.hot_wall import INFLOW, Channel


def bicgstab(A, b, precondition, rtol=1e-8, maxiter=200):
    """Solve A x = b: x, and the relative residual after every step, with the seconds that have passed."""
    x, shadow, start, history = torch.zeros_like(b), b, time.perf_counter(), [(0.0, 1.0)]
    r, p, v = b, torch.zeros_like(b), torch.zeros_like(b)
    rho = alpha = omega = torch.ones_like(b[0])  # numbers stay on the device
    while history[-1][1] > rtol and len(history) <= maxiter:
        rho, before = torch.dot(shadow, r), rho
        p = r + rho / before * (alpha / omega) * (p - omega * v)
        y = precondition(p)
        v = A @ y
        alpha = rho / torch.dot(shadow, v)
        s = r - alpha * v
        z = precondition(s)
        t = A @ z
        omega = torch.dot(t, s) / torch.dot(t, t)
        x = x + alpha * y + omega * z
        r = s - omega * t
        residual = float(torch.linalg.norm(r) / torch.linalg.norm(b))  # for which the host waits
        history.append((time.perf_counter() - start, residual))
    return x, history


def preconditioner(M, device):
    """A function of tensors."""
    return cla.LinePreconditioner(M, cla.find_lines(M), queue=None if device.type == "cpu" else device).solve


def main(argv=None):
    name = "python -m compactla.examples.torch_bicgstab"
    parser = argparse.ArgumentParser(prog=name, description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, nargs=2, default=(96, 64), metavar="N", help="along the wall and outwards")
    parser.add_argument("--device", type=torch.device, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--plot", metavar="FILE.png", help="draw how residuals fall in time")
    args = parser.parse_args(argv)
    channel = Channel(*args.cells)
    q = np.tile(INFLOW, (args.cells[0] * args.cells[1], 1))
    M = channel.jacobian(q, 0.1)
    csr = M.tocsr()
    parts = csr.indptr, csr.indices, csr.data, csr.shape
    A = torch.sparse_csr_tensor(*parts, device=args.device, check_invariants=True)
    b = torch.from_numpy(-channel.residual(q, q, 0.1).ravel()).to(args.device)
    print(f"{len(b)} unknowns on {args.device}")
    histories = {}
    for kind, precondition in (("lines", preconditioner(M, args.device)), ("nothing", lambda r: r)):
        bicgstab(A, b, precondition, maxiter=2)  # kernels are compiled, or loaded
        x, histories[kind] = bicgstab(A, b, precondition)
        seconds, _ = histories[kind][-1]
        residual = torch.linalg.norm(b - A @ x) / torch.linalg.norm(b)
        print(f"with {kind}: {len(histories[kind]) - 1} steps, {seconds:.3g} s, relative residual {residual:.1e}")
    if args.plot:
        plot(args.plot, args.device, histories)


def plot(path, device, histories):
    with drawing(path, columns=1) as (_, axes):
        for kind, history in histories.items():
            axes.loglog(*zip(*history[1:], strict=True), label=f"with {kind}: {len(history) - 1} steps")
        axes.set(title=f"BiCGSTAB in PyTorch, {device}", xlabel="seconds", ylabel="relative residual")
        axes.grid(alpha=0.3)
        axes.legend()


if __name__ == "__main__":
    main()
