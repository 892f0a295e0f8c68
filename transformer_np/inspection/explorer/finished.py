"""The finished pages: living pages with models that are trained already. They come with the package."""

import json
import re
from pathlib import Path

from ...data.files import read_utf8
from .lessons import lessons_for, texts
from .page import Page, assemble

PAGES = ("translator", "gpt")  # the files NAME.html
DATA = re.compile(r'id="(?:data|weights)">(.*?)</script>', re.DOTALL)
_HERE = Path(__file__).parent
FOLDERS = (_HERE / "finished", _HERE.parents[2] / "docs")  # of the package, and of a working copy


def finished_page(name="translator"):
    """The finished page of this name, with the scripts, styles and lessons of this version.

    name: "translator" for English–Portuguese byte pairs, "gpt" for a GPT that has read Alice in Wonderland
    """
    path = next(path for folder in FOLDERS if (path := folder / f"{name}.html").is_file())
    data, weights = map(json.loads, DATA.findall(read_utf8(path)))
    data |= {"lessons": lessons_for(data["kind"]), **texts()}
    return Page(assemble(data, weights))
