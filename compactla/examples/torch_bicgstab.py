"""BiCGSTAB in PyTorch, preconditioned along lines: ``python -m compactla.examples.torch_bicgstab --plot bicgstab.png``.

The matrix is that of a step of `compactla.examples.hot_wall`, whose cells are hundreds of times as long as high.
Matrix, vectors and factors are on a CUDA GPU, if there is one, and `P.solve` takes tensors there, in the stream of
PyTorch; on a CPU it works on the memory of tensors.
"""

from functools import partial

import torch

import compactla as cla
from compactla.examples import pictures
from compactla.examples.beside import arguments, compare
from compactla.examples.channel import first_system


def bicgstab(A, b, precondition, rtol=1e-8, maxiter=200):
    """Solve A x = b: x, and the relative residual after every step."""
    x, shadow, history = torch.zeros_like(b), b, [1.0]
    r, p, v = b, torch.zeros_like(b), torch.zeros_like(b)
    rho = alpha = omega = torch.ones_like(b[0])  # numbers stay on the device
    while history[-1] > rtol and len(history) <= maxiter:
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
        history.append(float(torch.linalg.norm(r) / torch.linalg.norm(b)))  # for which the host waits
    return x, history


def main(argv=None):
    args = arguments(__doc__, argv, cells=(96, 64), device="cuda" if torch.cuda.is_available() else "cpu")
    M, rhs = first_system(*args.cells)
    device, csr = torch.device(args.device), M.tocsr()
    parts = csr.indptr, csr.indices, csr.data, csr.shape
    A = torch.sparse_csr_tensor(*parts, device=device, check_invariants=True)
    b = torch.from_numpy(rhs).to(device)
    P = cla.LinePreconditioner(M, cla.find_lines(M), queue=None if device.type == "cpu" else device)
    ways = {"with lines": partial(bicgstab, A, b, P.solve), "with nothing": partial(bicgstab, A, b, lambda r: r)}
    found = compare(ways, rounds=3)
    for name, (x, history) in found.items():
        residual = torch.linalg.norm(b - A @ x) / torch.linalg.norm(b)
        print(f"{name}: {len(history) - 1} steps, relative residual {residual:.1e}")
    histories = {name: history for name, (_, history) in found.items()}
    pictures.residuals(args.plot, histories, f"BiCGSTAB in PyTorch, {device}", "steps")


if __name__ == "__main__":
    main()
