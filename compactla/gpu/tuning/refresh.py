"""New digests for the shipped results, after kernels were edited such that they hold: no choice becomes a worse one.

    python -m compactla.gpu.tuning.refresh

writes to the files in `tuned/`. If a kernel became another one, tune it again on that device instead.
"""

from pathlib import Path

from compactla.gpu.tuning import choices


def shipped() -> list[Path]:
    """The files."""
    return sorted(choices.SHIPPED.rglob("*.json"))


def outdated(file: Path) -> list[str]:
    """The names of results in a file that are of other sources."""
    content = choices.read(file)
    found = (name for name in choices.searches() if choices.of_name(content, name))
    return [name for name in found if not choices.is_current(content, name)]


def refresh() -> None:
    """Write the digests of the sources as they are now."""
    for file in shipped():
        names, content = outdated(file), choices.read(file)
        about = {name: value for name, value in content.items() if name not in ("format", "sources", "results")}
        choices.write(file, about, content["results"])
        print(f"{file.relative_to(choices.SHIPPED)}: {', '.join(names) or 'nothing is out of date'}")


if __name__ == "__main__":
    refresh()
