"""The verdict on code as a student writes it."""

from textwrap import dedent

import pytest

from transformer_np.homework import load
from transformer_np.homework.limit import TimeLimit
from transformer_np.homework.submission import Checks


@pytest.fixture
def verdict_on(tmp_path):
    def verdict_on(name, code):
        file = tmp_path / "homework.py"
        file.write_text("import numpy as np\n" + dedent(code), encoding="utf-8")
        return Checks(load(file), seed=0, limit=TimeLimit(120)).of(name).verdict  # whatever else the machine does

    return verdict_on
