"""The small tasks of `bench tasks`: their right answers, and what `train translate` reaches."""

import json
from datetime import date

import pytest

from transformer_np import cli
from transformer_np.bench import tasks


@pytest.mark.parametrize("task", tasks.TASKS)
def test_every_source_is_different_and_answered_right(task):
    pairs = tasks.pairs(task, seed=1)
    assert len(dict(pairs)) == len(pairs) == tasks.PAIRS and pairs != tasks.pairs(task, seed=2)
    for source, target in pairs[:200]:
        if task == "addition":
            assert sum(map(int, source.split("+"))) == int(target)
        elif task == "dates":
            assert str(date.fromisoformat(target).year)[2:] in source
        else:
            assert 3 <= len(source) <= 10 and len(target) == len(source)
    some = {"sort": ("cab", "abc"), "reverse": ("cab", "bac"), "copy": ("cab", "cab"), "Caesar": ("xyz", "abc")}
    if task in some:
        source, target = some[task]
        assert tasks.ON_WORDS[task](source) == target


def test_the_command(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(tasks, "score", lambda task, seed, torch: tasks.Score(task, seed, 0.5 + seed / 8, None))
    assert cli.main(["bench", "tasks", "--json", str(tmp_path / "found.json")]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["sort", "50.0%", "62.5%"] in rows and ["addition", "50.0%", "62.5%"] in rows
    found = json.loads((tmp_path / "found.json").read_text())["tasks"]
    assert found[0] == {"task": "sort", "seed": 0, "ours": 0.5, "torch": None} and len(found) == 12


def test_a_score(monkeypatch):
    monkeypatch.setattr(tasks, "PAIRS", 60)
    score = tasks.score("copy", 3, steps=2, d_model=8, d_ff=8, heads=2)
    assert (score.task, score.seed, score.torch) == ("copy", 3, None) and 0 <= score.ours <= 1


@pytest.mark.release
def test_the_defaults_learn_to_sort():
    assert tasks.score("sort", 0).ours >= 0.9
