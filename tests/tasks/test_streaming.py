"""Text while it is generated: pieces that are certain, the stop, and `generate --pretrained`."""

import json
import os
import signal
import subprocess
import sys

import pytest
from folders import bytewise, write
from shared import call, done, fails

from transformer_np.models import GPT, GPTConfig, Llama, LlamaConfig
from transformer_np.tasks.pretrained_text import PretrainedTextGenerator
from transformer_np.tasks.streaming import text_pieces, until

# --- pieces ----------------------------------------------------------------------------------------------------------

BYTES = ["Zw", "ö".encode()[:1], "ö".encode()[1:], "lf", " B", "🙂".encode()[:2], "🙂".encode()[2:], ""]


def decode_bytes(ids):
    parts = (BYTES[i] if isinstance(BYTES[i], bytes) else BYTES[i].encode() for i in ids)
    return b"".join(parts).decode("utf-8", errors="replace")


def decode_words(ids):
    """As Llama's tokenizer: every word brings its blank, and the first loses it."""
    return "".join(f" {i}" for i in ids)[1:]


def test_a_character_waits_for_all_its_bytes_and_a_word_keeps_its_blank():
    assert list(text_pieces(decode_bytes, [0], [1, 2, 3, 4, 5, 6])) == ["ö", "lf", " B", "🙂"]
    assert list(text_pieces(decode_bytes, [0, 1], [2, 3])) == ["lf"]  # the first half was in the prompt
    assert list(text_pieces(decode_bytes, [0], [3, 1])) == ["lf", "\ufffd"]  # half a character at the end
    assert list(text_pieces(decode_bytes, [0], [7, 3, 7])) == ["lf"]  # tokens without a text
    assert list(text_pieces(decode_words, [5, 6], [7, 8])) == [" 7", " 8"]
    assert list(text_pieces(decode_words, [5], [])) == []


def test_pieces_come_as_soon_as_they_are_certain():
    drawn = []

    def tokens():
        for token in (0, 1, 2, 3):
            drawn.append(token)
            yield token

    pieces = text_pieces(decode_bytes, [4], tokens())
    assert next(pieces) == "Zw" and drawn == [0]
    assert next(pieces) == "ö" and drawn == [0, 1, 2]


@pytest.mark.parametrize(
    ("pieces", "stop", "expected"),
    [
        (["ab", "c", "def"], "x", "abcdef"),
        (["ab", "c", "def"], "c", "ab"),
        (["ab", "c", "def"], "bcd", "a"),
        (["ab", "c", "def"], "f", "abcde"),
        (["aab", "aac"], "aac", "aab"),
        (["abc"], "abcd", "abc"),
        ([], "x", ""),
    ],
)
def test_until(pieces, stop, expected):
    assert "".join(until(stop, pieces)) == expected


def test_until_reads_no_further_than_the_stop():
    pieces = iter(["ab", "cd", "ef"])
    assert "".join(until("c", pieces)) == "ab"
    assert next(pieces) == "ef"


# --- a pretrained folder ---------------------------------------------------------------------------------------------


LLAMA, A_GPT = Llama(LlamaConfig(259, 16, 16, 4, 2, num_layers=2)), GPT(GPTConfig(259, 16, 16, 4, 2))


@pytest.fixture
def folder(tmp_path, request):
    """Of a Llama, or of the model that the test asks for, with a tokenizer of bytes."""
    return write(tmp_path, getattr(request, "param", LLAMA), bytewise())


@pytest.mark.long
@pytest.mark.parametrize("folder", [LLAMA, A_GPT], indirect=True, ids=["llama", "gpt"])
def test_generate_goes_on_with_a_pretrained_model(folder, capsys):
    generator = PretrainedTextGenerator.load(folder)
    written = generator.generate("one two", 30, temperature=0)  # beyond the context
    assert written.startswith("one two") and len(written) > 20
    pieces = list(generator.stream("one two", 30, temperature=0))
    assert pieces[0] == "one two" and "".join(pieces) == written and len(pieces) > 10
    options = ("--pretrained", folder, "--max-new-tokens", 30, "--temperature", 0)
    assert call(capsys, "generate", *options, "one two") == (0, written + "\n", "")
    assert done(capsys, "generate", *options, "one two", "three").startswith(f"{written}\n{'-' * 20}\nthree")
    assert call(capsys, "generate", *options, "one two", "--seed", 3) == (0, written + "\n", "")


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("form", [lambda i: i, lambda i: [i, 3]])
def test_the_text_ends_at_its_end_token(folder, name, form):
    generator = PretrainedTextGenerator.load(folder)
    assert generator.end_ids == ()
    ids = generator.tokenizer.encode(generator.generate("one two", 30, temperature=0))
    start = len(generator.tokenizer.encode("one two"))
    end = ids[start + 4]
    settings = json.loads((folder / "config.json").read_text()) if name == "config.json" else {}
    (folder / name).write_text(json.dumps({**settings, "eos_token_id": form(end)}))
    ended = PretrainedTextGenerator.load(folder)
    assert ended.end_ids == ((end,) if isinstance(form(0), int) else (end, 3))
    written = ended.tokenizer.encode(ended.generate("one two", 30, temperature=0))
    assert len(written) <= ids.index(end, start) + 1 < len(ids)


def test_prompts_and_files_that_will_not_do(folder, capsys):
    assert "the prompt is empty" in fails(capsys, "generate", "--pretrained", folder, "")
    assert "--top-p must lie in (0, 1]" in fails(capsys, "generate", "--pretrained", folder, "one", "--top-p", 7)
    (folder / "generation_config.json").write_text("[")
    assert "generation_config.json is damaged" in fails(capsys, "generate", "--pretrained", folder, "one")


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_the_text_is_shown_as_it_is_written_and_ctrl_c_ends_it(folder):
    """The process would write for minutes; what it has written is in the pipe before it is interrupted."""
    command = "import sys; from transformer_np.cli import main; sys.exit(main())"
    options = ["generate", "--pretrained", str(folder), "--max-new-tokens", "1000000", "one two"]
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": {**os.environ, "PYTHONUNBUFFERED": ""}}
    process = subprocess.Popen([sys.executable, "-c", command, *options], **how)
    try:
        start = os.read(process.stdout.fileno(), 1 << 16)  # all there is when something is there
        assert start.startswith(b"one two") and len(start) < 8192  # which a buffer would fill first
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert rest.endswith(b"\n") and b"Traceback" not in errors
    assert errors.decode().splitlines() == ["transformer-np: error: interrupted"]
