"""Choices for a processor: what is known of it, what was measured, and what files may hold."""

import json

import numpy as np
import pytest

import compactla as cla
from compactla.__main__ import main
from compactla.bench import tune_cpu
from compactla.cpu.emit import choices, machine

MB = 1 << 20


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The user's file of results."""
    file = tmp_path / "cache" / "results.json"
    monkeypatch.setattr(choices, "user_file", lambda: file)
    return file


@pytest.mark.parametrize(
    ("name", "register", "last", "expected"),
    [
        ("znver3", 32, 32 * MB, (8_000_000, 32 * MB)),
        ("znver5", 64, 96 * MB, (8_000_000, 32 * MB)),
        ("sapphirerapids", 64, 60 * MB, (8_000_000, 4 * MB)),
        ("neoverse-n1", 16, 32 * MB, (8_000_000, 32 * MB)),
        ("unheard-of", 16, 2 * MB, (2 * MB, 4 * MB)),
    ],
)
def test_processors_of_which_nothing_was_measured(monkeypatch, name, register, last, expected):
    monkeypatch.setattr(choices, "target", lambda: ("", name, set()))
    monkeypatch.setattr(choices, "machine", lambda: (register, 16))
    monkeypatch.setattr(choices, "last_cache", lambda: last)
    assert choices.usual() == (*expected, 32_768)


def test_caches_that_are_not_known(monkeypatch):
    monkeypatch.setattr(machine, "caches", dict)
    assert machine.last_cache() == 32 * MB


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{", '{"format": 1}', '{"format": 1, "choices": [1]}', '{"format": 0, "choices": {"far": 5}}',
        '{"format": 1, "choices": {"far": 0, "past": 1e9, "grain": true, "other": 5}}',
    ],
)  # fmt: skip
def test_files_that_hold_no_choices(results, content):
    results.parent.mkdir()
    results.write_text(content)
    assert choices.results(results) == {}
    assert choices.choices.__wrapped__() == choices.usual()._replace(
        **choices.results(choices.SHIPPED / choices.file_name())
    )


def test_shipped_files_hold_choices():
    for file in choices.SHIPPED.iterdir():
        content = json.loads(file.read_text())
        assert choices.results(file) == content["choices"] != {}


def test_sizes_from_which_on_all_gain():
    assert tune_cpu.least((1, 2, 4, 8), (2.0, 1.0, 1.3, 1.1)) == 4
    assert tune_cpu.least((1, 2), (1.5, 1.5)) == 1
    assert tune_cpu.least((1, 2), (1.5, 1.0)) is None


def test_tuning_saves_what_it_finds(results, monkeypatch, capsys):
    found = {"far": lambda: (3 * MB, "measured"), "grain": lambda: (None, "not measured")}
    monkeypatch.setattr(tune_cpu, "MEASURED", found)
    before = choices.choices.__wrapped__()
    main(["tune", "--device", "cpu"])
    assert choices.choices.__wrapped__() == before._replace(far=3 * MB)
    assert "as before: not measured" in capsys.readouterr().out
    monkeypatch.setattr(tune_cpu, "MEASURED", {"past": lambda: (5 * MB, "measured")})
    main(["tune", "--device", "cpu"])
    assert choices.choices.__wrapped__() == before._replace(far=3 * MB, past=5 * MB)


@pytest.mark.slow
def test_measuring(monkeypatch):
    monkeypatch.setattr(tune_cpu, "FOOTPRINTS", [1 << 14, 1 << 15])
    monkeypatch.setattr(tune_cpu, "COSTS", [1 << 12, 1 << 13])
    monkeypatch.setattr(tune_cpu, "ROUNDS", 2)
    for name, measure in tune_cpu.MEASURED.items():
        value, words = measure()
        assert (value is None or choices.is_choice(name, value)) and words
    A = cla.Pack.identity(3, 2, 2)
    assert not np.asarray(cla.getrfnp(A)).any()
