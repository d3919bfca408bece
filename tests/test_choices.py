"""Choices for a processor: what is known of it, what was measured, and what files may hold."""

import json

import numba
import numpy as np
import pytest

import compactla as cla
from compactla.__main__ import main
from compactla.bench import tune_cpu
from compactla.cpu.emit import choices, machine
from compactla.cpu.threads import sharing

MB = 1 << 20


@pytest.fixture
def results(tmp_path, monkeypatch):
    """The user's file of results."""
    file = tmp_path / "cache" / "results.json"
    monkeypatch.setattr(choices, "user_file", lambda: file)
    return file


@pytest.mark.parametrize(
    ("name", "register", "last", "expected", "emitted"),
    [
        ("znver3", 32, 32 * MB, (8_000_000, 32 * MB), (4, False, 24, 16, False)),
        ("znver4", 64, 32 * MB, (8_000_000, 32 * MB), (4, False, 9, 6, True)),
        ("znver5", 64, 96 * MB, (8_000_000, 32 * MB), (4, False, 8, 8, False)),
        ("sapphirerapids", 64, 60 * MB, (8_000_000, 4 * MB), (1, True, 24, 16, False)),
        ("neoverse-n1", 16, 32 * MB, (8_000_000, 32 * MB), (1, True, 24, 16, False)),
        ("unheard-of", 16, 2 * MB, (2 * MB, 4 * MB), (1, True, 24, 16, False)),
    ],
)
def test_processors_of_which_nothing_was_measured(monkeypatch, name, register, last, expected, emitted):
    monkeypatch.setattr(choices, "target", lambda: ("", name, set()))
    monkeypatch.setattr(choices, "machine", lambda: (register, 16))
    monkeypatch.setattr(choices, "last_cache", lambda: last)
    monkeypatch.setattr(choices, "choices", choices.usual)
    assert choices.usual() == (*expected, 32_768, *emitted) and choices.emitted() == emitted
    assert all(choices.is_choice(*choice) for choice in choices.usual()._asdict().items())


@pytest.mark.parametrize(
    ("caches", "found"),
    [
        ((), (32 << 10, 256 << 10, 32 * MB)),
        ((("1", "Data", "48K", "0"), ("1", "Instruction", "32K", "0")), (48 << 10, 256 << 10, 32 * MB)),
        ((("1", "Data", "64K", "0"), ("2", "Unified", "1M", "0-3,8")), (64 << 10, MB, MB)),
        ((("1", "Data", "64K", ""), ("2", "Unified", "", "0"), ("3", "", "?", "0")), (32 << 10, 256 << 10, 32 * MB)),
        ((("2", "Unified", "0K", "0"), ("3", "Unified", None, "0")), (32 << 10, 256 << 10, 32 * MB)),
    ],
)  # fmt: skip
def test_caches_that_are_not_known(tmp_path, monkeypatch, caches, found):
    """Systems that tell nothing of some caches, or not all, or nonsense."""
    for k, about in enumerate(caches):
        (tmp_path / f"index{k}").mkdir()
        for name, text in zip(("level", "type", "size", "shared_cpu_list"), about, strict=True):
            if text is not None:
                (tmp_path / f"index{k}" / name).write_text(text + "\n")
    monkeypatch.setattr(machine, "CACHES", tmp_path)
    monkeypatch.setattr(machine, "caches", machine.caches.__wrapped__)
    assert (machine.first_cache(), machine.second_cache(), machine.last_cache()) == found


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None), ({"cpu.max": "max 100000"}, None), ({"cpu.max": "100000 100000"}, 1),
        ({"cpu.max": "250000 100000"}, 3), ({"cpu.max": "1000 100000"}, 1), ({"cpu.max": ""}, None),
        ({"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}, None), ({"cpu.cfs_quota_us": "100000"}, None),
        ({"cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "100000"}, 2),
    ],
)  # fmt: skip
def test_processors_that_a_group_may_use(tmp_path, monkeypatch, files, expected):
    for name, text in files.items():
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(machine, "QUOTAS", [(tmp_path, names) for _, names in machine.QUOTAS])
    assert machine.share_of_processors() == expected
    monkeypatch.setattr(sharing, "share_of_processors", lambda: expected)
    monkeypatch.setitem(vars(numba.config), "NUMBA_NUM_THREADS", 2)
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    assert sharing.threads_of_process() == min(2, expected or 2)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "2")
    assert sharing.threads_of_process() == 2


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{", '{"format": 1}', '{"format": 1, "choices": [1]}', '{"format": 0, "choices": {"far": 5}}',
        '{"format": 1, "choices": {"far": 0, "past": 1e9, "grain": true, "other": 5, "packs": 9, "first": 1}}',
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
    found = {"far": lambda: ({"far": 3 * MB}, "measured"), "grain": lambda: ({}, "not measured")}
    monkeypatch.setattr(tune_cpu, "MEASURED", found)
    before = choices.choices.__wrapped__()
    main(["tune", "--device", "cpu"])
    assert choices.choices.__wrapped__() == before._replace(far=3 * MB)
    assert "as before: not measured" in capsys.readouterr().out
    monkeypatch.setattr(tune_cpu, "MEASURED", {"past": lambda: ({"past": 5 * MB}, "measured")})
    main(["tune", "--device", "cpu"])
    assert choices.choices.__wrapped__() == before._replace(far=3 * MB, past=5 * MB)


@pytest.mark.slow
def test_measuring(monkeypatch):
    monkeypatch.setattr(tune_cpu, "FOOTPRINTS", [1 << 14, 1 << 15])
    monkeypatch.setattr(tune_cpu, "COSTS", [1 << 12, 1 << 13])
    monkeypatch.setattr(tune_cpu, "ROUNDS", 2)
    monkeypatch.setattr(tune_cpu, "WAYS", tune_cpu.WAYS[:1])
    for measure in tune_cpu.MEASURED.values():
        found, words = measure()
        assert all(choices.is_choice(*choice) for choice in found.items()) and words
    A = cla.Pack.identity(3, 2, 2)
    assert not np.asarray(cla.getrfnp(A)).any()
