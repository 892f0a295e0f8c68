"""Lessons of the living page: small text files, one each, that drive the page and ask for a prediction.

    title: What a mask does                     at the top;  for: Transformer, or decoder-only, or any of both, or
                                                attention: a Bert too
    try: The cat is here. It sleeps.            a text to try if the one at hand does not show what the lesson claims
    words: Lucas will travel                    matrices of the lesson's own, and the names of their rows
    matrix: X = 1 0 2; 0 1 1; 3 0 1

    == The first words                          a step: its title, then commands, text, and a question if there is one
    open: decoder weights layer=1 head=2 row=3
    see: the row adds up to 1                   a claim that the page checks with its own numbers
    Row 3 has three weights that are not 0.

    ? What happens to the first row without the mask?
    - Nothing: it has only one key
    * It looks at later words too              the right answer has the star
    change: mask
    see: the row sees more
    Commands below the answers wait for the prediction, and so does this text.

The commands are those of COMMANDS, the claims those of CLAIMS; `live_page/lessons.js` says what they do. The page
offers a lesson with a text for which its claims hold, and leaves out a step for which no text does. The matrix is
covered until the prediction, unless a command below the answers changes what it shows.

`walk.txt` has the texts of the walk through every step, `terms.txt` the terms that explain themselves.
"""

from pathlib import Path

from ....data.files import read_utf8

FOLDER = Path(__file__).parent
KINDS = {
    "attention": ("Transformer", "GPT", "Llama", "Bert"),
    "any": ("Transformer", "GPT", "Llama"),
    "Transformer": ("Transformer",),
    "decoder-only": ("GPT", "Llama"),
}
COMMANDS = "text open show change best undo choose write sgd trained product see".split()
CLAIMS = (
    *("loss rises", "loss falls", "the gradient is not 0", "the gradients of the row add up to 0"),
    *("the row adds up to 1", "the row has one weight", "the row sees more", "the largest weight rises"),
    *("the row is nearly equal", "the row's own is largest", "some of the row are 0", "the rows get one size"),
    *("two equal words", "equal rows", "different rows", "the longest grows", "k are left"),
    *("the parts add up to the logit", "the logit changes by another amount"),
)


def lessons_for(kind, files=None):
    """The lessons for a model of this kind: those of the package, or those in `files`, in the order of their names."""
    paths = sorted(FOLDER.glob("[0-9]*.txt")) if files is None else files
    lessons = [parsed(read_utf8(path), Path(path).name) for path in paths]
    return [lesson for lesson in lessons if kind in KINDS[lesson["for"]]]


def texts():
    """{walk: {step: text}, terms: {term: explanation}}: what the stage says of a step and of a term."""
    found = {}
    for name in ("walk", "terms"):
        lines = filter(None, read_utf8(FOLDER / f"{name}.txt").splitlines())
        found[name] = dict(line.split(": ", 1) for line in lines)
    return found


def parsed(text, name):
    """{title, for, tries, words, matrices, steps} of a lesson. Raises ValueError that names the line it cannot read."""
    lesson = {"title": "", "for": "any", "tries": [], "words": [], "matrices": {}, "steps": []}
    for number, line in enumerate(text.splitlines(), 1):
        line, where = line.strip(), f"{name}, line {number}"
        key, colon, rest = line.partition(": ")
        steps = lesson["steps"]
        step = steps[-1] if steps else None
        if step is None and not line:
            continue
        if line.startswith("== "):
            steps.append({"title": line[3:], "text": [], "question": "", "answers": [], "right": None, "why": ""})
            steps[-1] |= {"before": [], "after": []}
        elif step is None:
            if not colon or key not in ("title", "for", "try", "words", "matrix"):
                wanted = 'title, for, try, words, matrix or a step such as "== Scores"'
                raise ValueError(f"{where}: expected {wanted}, got {line!r}")
            _head(lesson, key, rest, where)
        elif line.startswith("? "):
            step["question"] = line[2:]
        elif line[:2] in ("- ", "* ") and step["question"]:
            if line[0] == "*":
                step["right"] = len(step["answers"])
            step["answers"].append(line[2:])
        elif (colon and key in COMMANDS) or line in ("undo", "sgd", "trained"):
            if key == "see" and rest not in CLAIMS:
                raise ValueError(f"{where}: a claim must be one of {'; '.join(CLAIMS)}, got {rest!r}")
            step["after" if step["answers"] else "before"].append([key, rest])
        elif step["answers"]:
            step["why"] = f"{step['why']} {line}".strip()
        else:
            step["text"].append(line)
    for step in lesson["steps"]:
        paragraphs = "\n".join(step["text"]).split("\n\n")
        step["text"] = [text.strip().replace("\n", " ") for text in paragraphs if text.strip()]
    _check(lesson, name)
    return lesson


def _head(lesson, key, rest, where):
    if key == "matrix":
        symbol, _, numbers = rest.partition(" = ")
        try:
            rows = [[float(number) for number in row.split()] for row in numbers.split(";")]
        except ValueError:
            raise ValueError(f'{where}: expected a matrix such as "X = 1 0; 0 1", got {rest!r}') from None
        if len({len(row) for row in rows}) != 1 or not rows[0]:
            raise ValueError(f"{where}: the rows of {symbol} must be equally long")
        lesson["matrices"][symbol] = rows
    elif key == "words":
        lesson["words"] = rest.split()
    elif key == "try":
        lesson["tries"].append(rest)
    elif key == "for" and rest not in KINDS:
        raise ValueError(f"{where}: for must be one of {', '.join(KINDS)}, got {rest!r}")
    else:
        lesson[key] = rest


def _check(lesson, name):
    if not lesson["title"] or not lesson["steps"]:
        raise ValueError(f'{name}: a lesson has a title and at least one step, such as "== Scores"')
    for step in lesson["steps"]:
        if step["question"] and (len(step["answers"]) < 2 or step["right"] is None):
            where = f'{name}, "{step["title"]}"'
            raise ValueError(f"{where}: a question has at least two answers, the right one with a star")
