"""Fresh interpreters, for what a process does only once: start, cache, fork, end."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 300  # a process that takes longer hangs


def start(program, package=ROOT, **environment):
    """A Python process that runs `program` with the compactla that is in the folder `package`."""
    path = os.pathsep.join(map(str, (package, ROOT / "tests")))
    settings = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": None, **environment}  # the next one needs the bytecode
    variables = {name: value for name, value in {**os.environ, **settings}.items() if value is not None}
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.Popen(command, env=variables, cwd=package, stdout=-1, stderr=-1, text=True)


def finish(process):
    """The output of a process, which has ended well and complained about nothing."""
    try:
        output, complaints = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert (process.returncode, complaints) == (0, ""), complaints
    return output


def python(program, **options):
    return finish(start(program, **options))
