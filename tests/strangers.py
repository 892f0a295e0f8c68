"""Files of a stranger with one value replaced, each read by a command in a process of its own that may take MEMORY and
SECONDS: `python tests/strangers.py FOLDER SHARE SEED`.

A command must read the file or refuse it in one message. The limits are set from outside: of the address space, so that
memory which is only asked for counts too, and of the processor's time, after which the kernel ends the process.
"""

import contextlib
import io
import json
import os
import resource
import shutil
import signal
import sys
from pathlib import Path

import numpy as np

MEMORY = 64 << 20  # bytes, beyond those of a process that has read the undamaged folder
SECONDS = 2.0
ODD = [
    None, True, -1, 0, 1, 2, 3.5, 40, 10**6, 10**9, 10**18, 10**30, 1e308, float("nan"), "", "x", "x" * 10**5, [], [0],
    [10**9], [[]] * 10**5, {}, {"a": 1}, {str(i): i for i in range(10**5)},
]  # fmt: skip
TEXT = "a dog barks"


def places(value, path=()):
    """The paths of all values in JSON data; of a long list or dict only of three of its values."""
    if path:
        yield path
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    for key, inside in items if len(items) <= 40 else items[:: len(items) // 2]:
        yield from places(inside, (*path, key))


def replaced(value, path, new):
    """The data with the value at this path replaced."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


def header_of(path):
    """The JSON header of a safetensors file, and the numbers behind it."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def with_header(header, numbers):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def files_of(folder):
    """(file, its data as JSON, from data to content) of each file of a folder that has some."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".json":
            yield path, json.loads(path.read_text(encoding="utf-8")), lambda data: json.dumps(data).encode()
        elif path.suffix == ".safetensors":
            header, numbers = header_of(path)
            yield path, header, lambda data, numbers=numbers: with_header(data, numbers)
            for name in ("transformer_np",):  # the header of a checkpoint, inside that of the file
                if name in header.get("__metadata__", {}):
                    inside = json.loads(header["__metadata__"][name])

                    def content(data, header=header, numbers=numbers):
                        own = {"transformer_np": json.dumps(data)}  # without checksums, as in older files
                        return with_header({**header, "__metadata__": own}, numbers)

                    yield path, inside, content


def cases(folder, share, seed):
    """(command, folder, file, path, value, content) of a share of all replacements."""
    rng = np.random.default_rng(seed)
    for line in (folder / "commands.txt").read_text(encoding="utf-8").splitlines():
        command = line.split("\t")
        base = folder / command[-1]
        for file, data, content in files_of(base):
            for path in places(data):
                for value in ODD:
                    if rng.random() < share:
                        yield command[:-1], base, file, path, value, content(replaced(data, path, value))


def outcome(command, folder):
    """What a command does with a folder, in a process with limits: "" if it ends as it should."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        from transformer_np import cli

        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
                code = cli.main([word.format(folder) for word in command])
        except BaseException as error:
            code, said = "raised", io.StringIO(repr(error))
        errors = [line for line in said.getvalue().splitlines() if "error:" in line]
        wrong = code not in (0, 2) or "memory" in said.getvalue() or len(errors) > 1
        os.write(writing, f"{code}: {said.getvalue()}"[:1500].encode() if wrong else b"")
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as file:
        found = file.read().decode()
    _, status = os.waitpid(child, 0)
    return f"killed by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else found


def main(folder, share, seed):
    """Print a line of JSON for each case that went wrong, then the number of cases."""
    folder, place, count = Path(folder), Path(folder) / "damaged", 0
    for line in (folder / "commands.txt").read_text(encoding="utf-8").splitlines():
        *command, name = line.split("\t")  # loads all that is needed before the limits are set
        if found := outcome(command, folder / name):
            print(json.dumps({"undamaged": name, "found": found}))
        from transformer_np import cli

        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            cli.main([word.format(folder / name) for word in command])
    for command, base, file, path, value, content in cases(folder, float(share), int(seed)):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(base, place)
        (place / file.relative_to(base)).write_bytes(content)
        count += 1
        if found := outcome(command, place):
            shown = repr(value)[:40]
            at = [str(part)[:60] for part in path]
            print(
                json.dumps({"in": str(file.relative_to(folder)), "at": at, "value": shown, "found": found}), flush=True
            )
    print(count)


def make(folder):
    """Folders of all kinds, small and random, and the commands that read them."""
    from folders import bytewise, wordpiece

    from transformer_np import cli
    from transformer_np.inspection.samples import randomised
    from transformer_np.models import GPT, T5, Bert, BertConfig, GPTConfig, Llama, LlamaConfig, T5Config
    from transformer_np.support.files import write_text

    rng = np.random.default_rng(0)
    small = {"d_model": 12, "num_heads": 3, "d_ff": 10}
    one = {"num_layers": 1, "max_len": 16}
    bert = {**small, **one, "mlm_head": False}
    kinds = {
        "classes": (Bert(BertConfig(16, num_classes=2, **bert)), wordpiece(), ["classify", "--pretrained", "{}", TEXT]),
        "sentences": (Bert(BertConfig(16, **bert)), wordpiece(), ["embed", "--model", "{}", TEXT]),
        "gpt2": (GPT(GPTConfig(259, **small, **one)), bytewise(), ["generate", "--pretrained", "{}"]),
        "llama": (Llama(LlamaConfig(259, **small, **one)), bytewise(), ["generate", "--pretrained", "{}"]),
        "qwen2": (
            Llama(LlamaConfig(259, window=3, qkv_bias=True, **small, **one)), bytewise(),
            ["generate", "--pretrained", "{}"],
        ),
        "t5": (
            T5(T5Config(16, **small, num_encoder_layers=1, num_decoder_layers=1, d_head=4)), wordpiece(),
            ["t5", "--pretrained", "{}", "--max-len", "2", TEXT],
        ),
    }  # fmt: skip
    commands = []
    for name, (model, tokenizer, command) in kinds.items():
        randomised(model, rng).save_pretrained(folder / name)
        tokenizer.save(str(folder / name / "tokenizer.json"))
        command = [*command, "--max-new-tokens", "2", TEXT] if command[0] == "generate" else command
        commands.append([*command, name])
        write_text(folder / name / "tokenizer_config.json", json.dumps({"model_max_length": 16, "do_lower_case": True}))
    ends = {"eos_token_id": [9, 8], "do_sample": True, "temperature": 0.7, "top_k": 5, "top_p": 0.9, "num_beams": 1}
    write_text(folder / "gpt2" / "generation_config.json", json.dumps(ends))
    modules = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    listed = [{"idx": i, "path": path, "type": f"x.{kind}"} for i, (path, kind) in enumerate(modules)]
    (folder / "sentences" / "1_Pooling").mkdir()
    for file, data in (
        ("modules.json", listed), ("sentence_bert_config.json", {"max_seq_length": 9, "do_lower_case": False}),
        ("1_Pooling/config.json", {"embedding_dimension": 12, "pooling_mode": ["cls", "mean"], "include_prompt": True}),
        ("config_sentence_transformers.json", {"prompts": {"query": "a "}, "default_prompt_name": "query"}),
    ):  # fmt: skip
        write_text(folder / "sentences" / file, json.dumps(data))
    tiny = "--steps 1 --layers 1 --heads 2 --d-model 8 --batch-size 2 --quiet".split()
    write_text(folder / "text.txt", "a dog barks and a cat sleeps\n" * 200)
    write_text(folder / "pairs.tsv", "".join(f"a dog {i % 9}\tum cão {i % 9}\n" for i in range(60)))
    write_text(folder / "labelled.tsv", "".join(f"{'xy'[i % 2]}\ta dog {i}\n" for i in range(40)))
    text = ["--text", folder / "text.txt"]
    for kind, options, command in (
        ("gpt", [*text, "--block-size", 8, "--tokens", "bpe", "--vocab-size", 280], ["generate"]),
        ("xl", [*text, "--segment-len", 8, "--mem-len", 4], ["generate"]),
        ("classify", ["--data", folder / "labelled.tsv"], ["classify"]),
        ("translate", ["--pairs", folder / "pairs.tsv"], ["translate"]),
        ("t5", ["--tasks", "date", "--max-len", 64, "--vocab-size", 280], ["t5"]),
        ("word2vec", [*text, "--min-count", 1], ["neighbours"]),
    ):
        own = tiny if kind != "word2vec" else "--steps 1 --d-model 8 --quiet".split()
        with contextlib.redirect_stdout(io.StringIO()):
            code = cli.main(list(map(str, ["train", kind, "--out", folder / f"run-{kind}", *options, *own])))
        assert code == 0, kind
        new = ["--max-new-tokens", "2"] if command == ["generate"] else []
        words = {"t5": "date: 24 March 2019", "word2vec": "dog"}.get(kind, "a dog")
        commands.append([*command, "--model", "{}", *new, words, f"run-{kind}"])
    write_text(folder / "commands.txt", "\n".join("\t".join(command) for command in commands) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
