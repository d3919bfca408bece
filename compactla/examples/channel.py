"""A reacting flow along a hot wall, to try solvers on: its equations on a grid, and their Jacobians.

Fuel F and oxidizer O are carried along the wall, diffuse, and burn at the rate w, which heats them:

    dq/dt + u dq/dx = div(D grad q) + (-1, -1, 1) w,    q = (F, O, T)
    w = Da F O exp(beta (T - 1))

The boundary layer at the wall takes cells that are hundreds of times as long as they are high.
"""

import numpy as np
import scipy.sparse as sp

LENGTH, HEIGHT = 4.0, 1.0  # of the channel
STRETCH = 7.0  # the logarithm of how many times as high the highest cells are as the lowest, at the wall
DIFFUSIVITY = np.array([1.0e-3, 1.6e-3, 2.0e-3])  # of F, O and T
INFLOW = np.array([1.0, 1.0, 0.0])
HOT = 1.0  # temperature of the wall past a quarter of its length; before, it is as cold as what flows in
DAMKOEHLER, BETA = 60.0, 6.0


class Channel:
    """The equations on a grid of nx x ny cells, numbered from the wall outwards, column by column."""

    def __init__(self, nx, ny):
        self.x = np.linspace(0, LENGTH, nx + 1)
        self.y = HEIGHT * np.expm1(STRETCH * np.linspace(0, 1, ny + 1)) / np.expm1(STRETCH)
        high = np.diff(self.y)
        center = self.y[1:] - high / 2
        velocity = center * (2 - center)
        hot = self.x[1:] > LENGTH / 4
        wall = np.zeros((nx, ny))
        wall[:, 0] = DIFFUSIVITY[2] / (high[0] * high[0] / 2)
        flow = sp.kron(upwind(self.x), sp.diags_array(velocity))
        spread = sp.kron(diffusion(self.x), sp.eye_array(ny)) + sp.kron(sp.eye_array(nx), diffusion(self.y))
        parts = [(flow + diffusivity * spread).tocsr() for diffusivity in DIFFUSIVITY]
        parts[2] = (parts[2] + sp.diags_array(wall.ravel())).tocsr()
        data = np.stack([part.data for part in parts], axis=1)[:, :, None] * np.eye(3)
        self.transport = sp.bsr_array((data, parts[0].indices, parts[0].indptr))
        row = np.repeat(np.arange(nx * ny), np.diff(parts[0].indptr))
        self.diagonal = np.flatnonzero(parts[0].indices == row)  # places of the diagonal blocks
        source = np.zeros((nx, ny, 3))
        source[0] = velocity[:, None] / (self.x[1] - self.x[0]) * INFLOW
        source[hot, :, 2] += HOT * wall[hot]
        self.source = source.reshape(-1, 3)

    def reaction(self, q):
        """The rate in every cell, and its derivatives by F, O and T."""
        fuel, oxidizer, T = q.T
        speed = DAMKOEHLER * np.exp(np.minimum(BETA * (T - 1), 20))  # also where Newton's method goes astray
        rate = speed * fuel * oxidizer
        return rate, np.stack([speed * oxidizer, speed * fuel, BETA * rate], axis=1)

    def residual(self, q, before, dt):
        rate, _ = self.reaction(q)
        change = (self.transport @ q.ravel()).reshape(-1, 3) - self.source
        return (q - before) / dt + change - rate[:, None] * np.array([-1, -1, 1])

    def jacobian(self, q, dt):
        """The derivatives of the residual: always of the same pattern."""
        _, slope = self.reaction(q)
        M = self.transport.copy()
        M.data[self.diagonal] += np.eye(3) / dt - np.array([-1, -1, 1])[:, None] * slope[:, None, :]
        return M


def first_system(nx, ny, dt=0.1):
    """Matrix and right-hand side of the first step of Newton's method."""
    channel, q = Channel(nx, ny), np.tile(INFLOW, (nx * ny, 1))
    return channel.jacobian(q, dt), -channel.residual(q, q, dt).ravel()


def diffusion(faces):
    """- d2/dx2 on cells between these faces, without a flux at the ends."""
    size = np.diff(faces)
    flux = 1 / ((size[1:] + size[:-1]) / 2)
    inner = np.append(flux, 0) + np.append(0, flux)
    return sp.diags_array([-flux / size[1:], inner / size, -flux / size[:-1]], offsets=[-1, 0, 1])


def upwind(faces):
    """d/dx on cells between these faces, for a flow to the right."""
    size = np.diff(faces)
    return sp.diags_array([-1 / size[1:], 1 / size], offsets=[-1, 0])
