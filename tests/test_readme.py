"""What the README shows works as it stands there."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_python_of_the_first_steps(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    train, check = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[:2]
    names = {}
    exec(train, names)
    assert names["loss"] < 0.05 and "[[8, 7, 6, 5, 4, 3]]" in capsys.readouterr().out
    assert (tmp_path / "backwards.png").stat().st_size > 1000
    exec(check, names)
    assert "right" in capsys.readouterr().out


def test_every_file_it_names_is_there():
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert len(local) > 10
    assert [link for link in local if not (README.parent / link).exists()] == []
