"""The verdict on code as a student writes it."""

import re
from textwrap import dedent

import pytest

from transformer_np.homework import all_exercises, load
from transformer_np.homework.limit import TimeLimit
from transformer_np.homework.submission import Checks


@pytest.fixture
def verdict_on(tmp_path):
    """verdict_on(code) -> the Verdict on the last exercise that the code defines; above it, line 1 imports NumPy."""

    def verdict_on(code, name=None):
        file = tmp_path / "homework.py"
        file.write_text("import numpy as np\n" + dedent(code), encoding="utf-8")
        defined = re.findall(r"^(?:def |class )?(\w+)(?= =|[(:])", dedent(code), re.MULTILINE)
        name = name or [name for name in defined if name in all_exercises()][-1]
        return Checks(load(file), seed=0, limit=TimeLimit(120)).of(name).verdict  # whatever else the machine does

    return verdict_on
