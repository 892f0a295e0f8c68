"""Make the finished pages again: docs/translator.html and docs/gpt.html.

python docs/finished_pages.py              with the scripts and lessons of today, and the models that are in them
python docs/finished_pages.py --train      with models that are trained again, in runs/finished, about five minutes
python docs/finished_pages.py --train gpt  only this one

The GPT reads docs/alice.txt: Alice's Adventures in Wonderland by Lewis Carroll, 1865, in the public domain.
"""

import sys
from pathlib import Path

from transformer_np.cli import main
from transformer_np.data import LECTURE_SENTENCE, english_portuguese, split_text
from transformer_np.inspection.explorer.finished import PAGES, finished_page
from transformer_np.inspection.explorer.live import explore_live
from transformer_np.tasks.text import TextGenerator

DOCS = Path(__file__).parent
RUNS = Path("runs/finished")
TRAIN = {
    "translator": "translate --pairs {data} --tokens bpe --vocab-size 500 --steps 700",
    "gpt": "gpt --text {data} --tokens bpe --vocab-size 1000 --steps 2000 --keep last",  # it may know it by heart
}
OPENING = "Alice was beginning to get very tired of sitting by her sister on the bank"


def alice():
    """The paragraphs, each on one line."""
    return [" ".join(lines.split()) for lines in (DOCS / "alice.txt").read_text("utf-8").split("\n\n")]


def beginnings():
    """The first words of forty paragraphs of the training part."""
    read = split_text("\n\n".join(alice())).train.split("\n\n")
    found = [" ".join(paragraph.split()[:12]) for paragraph in read if paragraph.count(" ") > 20]
    return found[:: len(found) // 40]


def with_full_stops(pairs):
    """The pairs with a full stop after every second statement, for a model that reads what people type; without the
    lecture's sentence, so that the model has not seen it."""
    found = []
    for i, (source, target) in enumerate(pairs):
        stop = "" if i % 2 or source.endswith("?") else "."
        if source != LECTURE_SENTENCE:
            found.append((source + stop, target + stop))
    return found


def train(name):
    RUNS.mkdir(parents=True, exist_ok=True)
    data = RUNS / f"{name}.txt"
    pairs = with_full_stops(english_portuguese())
    text = "\n\n".join(alice()) if name == "gpt" else "\n".join(map("\t".join, pairs))
    data.write_text(f"{text}\n", "utf-8")
    main(["train", *TRAIN[name].format(data=data).split(), "--out", str(RUNS / name), "--seed", "0"])
    if name == "translator":
        main(["explore", "--model", str(RUNS / name), "-o", str(DOCS / f"{name}.html")])
    else:
        gpt = TextGenerator.load(RUNS / name)
        page = explore_live(gpt.model, gpt.tokenizer, OPENING, beginnings(), formats=["int8"], seen=gpt.seen)
        page.save(DOCS / f"{name}.html")


if __name__ == "__main__":
    for name in PAGES:
        if "--train" in sys.argv and (len(sys.argv) == 2 or name in sys.argv):
            train(name)
        finished_page(name).save(DOCS / f"{name}.html")
