"""Make the finished pages again: docs/translator.html and docs/gpt.html.

python docs/finished_pages.py              with the scripts and lessons of today, and the models that are in them
python docs/finished_pages.py --train      with models that are trained anew, in runs/finished, about five minutes
"""

import re
import sys
from pathlib import Path

from transformer_np.cli import main
from transformer_np.data import english_portuguese
from transformer_np.data.corpus import with_full_stops
from transformer_np.inspection.explorer.finished import PAGES, finished_page
from transformer_np.inspection.explorer.live import explore_live
from transformer_np.tasks.text import TextGenerator

DOCS = Path(__file__).parent
RUNS = Path("runs/finished")
TEXTS = ["README.md", "notebooks/text/*.md", "docs/*.md", "transformer_np/homework/sheets/*.md"]
TRAIN = {
    "translator": "translate --pairs {data} --tokens bpe --vocab-size 500 --steps 700",
    "gpt": "gpt --text {data} --tokens bpe --vocab-size 1000 --steps 2500",
}


def prose():
    """The paragraphs of the project's own texts, without code, tables, headings and marks."""
    paragraphs = []
    for path in (path for pattern in TEXTS for path in sorted(DOCS.parent.glob(pattern))):
        text = re.sub(r"^```.*?^```\s*$|\$\$.*?\$\$", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for paragraph in re.split(r"\n\s*\n", text):
            plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraph.strip())
            plain = re.sub(r"\s*\n\s*", " ", re.sub(r"[*`_]", "", plain))
            if plain.count(" ") > 8 and plain[0] not in "#|<!{%:$+" and "|" not in plain:
                paragraphs.append(plain)
    return "\n\n".join(paragraphs) + "\n"


def beginnings():
    """The first words of forty paragraphs."""
    found = [" ".join(paragraph.split()[:4]) for paragraph in prose().split("\n\n") if paragraph[0].isalpha()]
    return found[:: len(found) // 40]


def train(name):
    RUNS.mkdir(parents=True, exist_ok=True)
    data = RUNS / f"{name}.txt"
    pairs = with_full_stops(english_portuguese())
    text = prose() if name == "gpt" else "".join(f"{source}\t{target}\n" for source, target in pairs)
    data.write_text(text, "utf-8")
    main(["train", *TRAIN[name].format(data=data).split(), "--out", str(RUNS / name), "--seed", "0"])
    if name == "translator":
        main(["explore", "--model", str(RUNS / name), "-o", str(DOCS / f"{name}.html")])
    else:
        gpt = TextGenerator.load(RUNS / name)
        page = explore_live(gpt.model, gpt.tokenizer, "The attention weights", beginnings(), formats=["int8"])
        page.save(DOCS / f"{name}.html")


if __name__ == "__main__":
    for name in PAGES:
        if "--train" in sys.argv:
            train(name)
        finished_page(name).save(DOCS / f"{name}.html")
