"""Pictures of the gallery, a function for each. They take a file's path, and do nothing if it is None."""

import functools

import numpy as np


def picture(columns=2, **layout):
    """A function of a path and data, from one that draws data into axes side by side.

    Axes get the legends that they have labels for.
    """

    def decorate(draw):
        @functools.wraps(draw)
        def drawn(path, *data):
            if path is None:
                return
            from matplotlib.figure import Figure

            figure = Figure(figsize=(2 + 4.5 * columns, 4), layout="constrained")
            grid = figure.subplots(1, columns, squeeze=False, **layout)[0]
            draw(*grid, *data)
            for axes in grid:
                if axes.get_legend_handles_labels()[0]:
                    axes.legend()
            figure.savefig(path, dpi=120)
            print(f"plot: {path}")

        return drawn

    return decorate


@picture(columns=1)
def residuals(axes, histories, title, xlabel="iterations"):
    """Norms of residuals in each iteration, relative to the first, by name."""
    for name, history in histories.items():
        axes.semilogy(np.asarray(history) / history[0], label=f"{name}: {len(history) - 1} {xlabel}")
    axes.set(title=title, xlabel=xlabel, ylabel="relative residual")
    axes.grid(alpha=0.3)


draw_residuals = residuals.__wrapped__


@picture(columns=1)
def heat(axes, conductivity, u):
    field = np.where(conductivity < 1, np.nan, u).T
    axes.figure.colorbar(axes.imshow(field, cmap="inferno", origin="lower"), label="temperature")
    axes.contour(field, levels=12, colors="white", linewidths=0.5)
    axes.set(title="heat flows around holes")


@picture(width_ratios=(3, 2))
def hot_wall(left, right, channel, q, histories):
    field = q.reshape(len(channel.x) - 1, -1, 3).T
    left.figure.colorbar(left.pcolormesh(channel.x, channel.y, field[2], cmap="inferno"), label="T")
    x, y = ((faces[1:] + faces[:-1]) / 2 for faces in (channel.x, channel.y))
    left.contour(x, y, field[0], [0.5], colors="white")
    left.set(title="temperature, and where half of the fuel is burnt", xlabel="along the wall")
    left.set_ylabel("from the wall")
    left.set_yscale("symlog", linthresh=10 * channel.y[1])
    draw_residuals(right, histories, "the last linear system")


@picture()
def ignition(left, right, T, OH, after):
    fields = (left, T, "inferno", "temperature", "K"), (right, OH, "viridis", "hydroxyl", "mol/m$^3$")
    for axes, field, colours, name, unit in fields:
        axes.figure.colorbar(axes.imshow(field, cmap=colours, extent=(-2, 2, -2, 2)), label=unit)
        axes.set(title=f"{name} after {after}")


@picture(columns=3)
def jax_rods(first, second, third, true, found):
    grid = {"diffusivity of A": first, "diffusivity of B": second, "rate": third}
    for (name, axes), x, y in zip(grid.items(), np.exp(true).T, np.exp(found).T, strict=True):
        axes.loglog(x, y, ".", markersize=2)
        axes.set(title=name, xlabel="true", ylabel="found")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_minor_formatter("")


@picture()
def kabsch(left, right, off, distance, mirrored, expected):
    for axes, values in ((left, off), (right, distance)):
        parts, labels = (values[~mirrored], values[mirrored]), ("det(U V^T) = 1", "det(U V^T) = -1")
        axes.hist(parts, bins=60, stacked=True, label=labels)
    left.set(title="rotations", xlabel="off by so many degrees", ylabel="frames")
    right.axvline(expected, color="k", label="expected")
    right.set(title="atoms, root of the mean square", xlabel="distance from the molecule's")


@picture()
def kalman(left, right, truth, measured, states, surprise):
    for x, style, name in ((truth, "k-", "true"), (measured, "r.", "measured"), (states, "b-", "filtered")):
        tracks = left.plot(x[:, :6, 0, 0], x[:, :6, 1, 0], style, linewidth=1, markersize=2)
        tracks[0].set_label(name)
    objects = truth.shape[1]
    left.set(title=f"some of {objects} objects", xlabel="x", ylabel="y")
    spread = 1.96 * 2 / np.sqrt(objects)  # of the mean of so many squares of chi, of two degrees each
    right.axhspan(2 - spread, 2 + spread, alpha=0.2, label="95% of consistent filters")
    right.plot(surprise, label="innovations squared over S")
    right.set(title="how filters are surprised", xlabel="step")


@picture(columns=1)
def quadratic_programs(axes, x, Q, r):
    risk = np.sqrt(np.einsum("qi,qij,qj->q", x, Q, x))
    points = axes.scatter(risk, (r * x).sum(axis=1), s=4, c=(x > 1e-6).sum(axis=1))
    axes.set(title=f"{len(x)} portfolios", xlabel="standard deviation", ylabel="return")
    axes.figure.colorbar(points, label=f"of {x.shape[1]} assets are held")


@picture(columns=1)
def spectral_elements(axes, errors):
    for error, direction in zip(errors, "xyz", strict=True):
        axes.semilogy(np.sort(error.max(axis=(1, 2, 3))), label=f"along {direction}")
    axes.set(title="derivatives", xlabel="elements, by error", ylabel="largest error")


@picture()
def torch_lorenz(left, right, dt, tracks, learnt):
    """States over time, and the parameters of each round over true ones, by name."""
    for (name, x), style in zip(tracks.items(), ("k-", "r:", "b--"), strict=True):
        left.plot(dt * np.arange(len(x)), x[:, 0, 2], style, label=name)
    left.set(title="the coordinate that is not measured, of a particle", xlabel="time")
    for name, ratios in learnt.items():
        right.plot(ratios, label=name)
    right.set(title="parameters, learnt over true ones", xlabel="round", yscale="log")
