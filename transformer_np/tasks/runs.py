"""A run is a folder: `run.json` describes the task, its options and data, `checkpoint.safetensors` has the weights, and
`checkpoint.history` the losses."""

import json
from pathlib import Path
from zlib import crc32

from ..models import Bert, Word2Vec
from ..models.layouts.folder import CONFIG, KEPT_TEXTS, save_pretrained
from ..pretrained.folder import GENERATION
from ..support.files import read_json, read_json_object, write_text
from ..training.checkpoint import model_header, model_tensors, save_checkpoint
from ..training.history import history_path
from .export import as_pretrained
from .fine_tuning import kept, load, read_tokenizer

DESCRIPTION, CHECKPOINT = "run.json", "checkpoint.safetensors"


def create_run(folder, description):
    """Make the folder and write the description before training, so that a folder that cannot be written fails early.

    Raises FileExistsError if the folder already has a run, another OSError if it cannot be created or written.
    """
    folder = Path(folder)
    if (folder / CHECKPOINT).exists():
        in_python = "train({}, folder, resume=True) continues it, overwrite=True discards it"
        how = f"continue it with --resume, or choose another folder with --out. In Python: {in_python}"
        raise FileExistsError(f"{folder} already has a run: {how}")
    replace_run(folder, description)


def replace_run(folder, description):
    """Like create_run, but discard an existing run. Raises OSError if the folder cannot be created or written."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in (folder / CHECKPOINT, history_path(folder / CHECKPOINT)):
        path.unlink(missing_ok=True)  # first, because it does not match the new description
    write_description(folder, description)


def write_description(folder, description):
    """Write the description of a run into its folder, atomically. Raises OSError if it cannot be written."""
    write_text(Path(folder) / DESCRIPTION, json.dumps(description, ensure_ascii=False, indent=1) + "\n")


def nothing_saved(folder):
    """A line of text about a run without a checkpoint, which starts from the beginning."""
    history = history_path(Path(folder) / CHECKPOINT)
    if not history.exists():
        return "nothing was saved yet: this run starts from the beginning"
    why = "it was deleted, or the run was stopped during its first save"
    return f"{history} is there, but {CHECKPOINT} is not: {why}; this run starts from the beginning"


def _check_is_run(folder):
    """Raise FileNotFoundError for a folder without a run."""
    if not (Path(folder) / DESCRIPTION).is_file():
        is_pretrained = (Path(folder) / CONFIG).is_file()
        other = "; it has a pretrained model, which some commands read with --pretrained" if is_pretrained else ""
        raise FileNotFoundError(f"{folder} is not the folder of a run: it has no {DESCRIPTION}{other}")


def read_run(folder, *kinds):
    """The description of a run; FileNotFoundError if there is none, ValueError if damaged or of another kind."""
    _check_is_run(folder)
    description = read_json(Path(folder) / DESCRIPTION)
    found = description.get("kind") if isinstance(description, dict) else None
    if found not in kinds:
        raise ValueError(f"{folder} has a run of the kind {found!r}, not {' or '.join(map(repr, kinds))}")
    return description


def sum_of_vocabulary(tokenizers):
    """The checksum of {name: Tokenizer}. The checkpoint has this checksum; the description has the tokenizers."""
    return crc32(json.dumps({name: tokenizer.to_dict() for name, tokenizer in tokenizers.items()}).encode())


def load_run_model(folder, tokenizers):
    """The model in the folder of a run whose description has these tokenizers. Raises FileNotFoundError, and ValueError
    for a damaged checkpoint or one that was trained with another vocabulary."""
    path = Path(folder) / CHECKPOINT
    model, header = load(path)
    found = sum_of_vocabulary(tokenizers)
    if header.get("vocabulary", found) != found:
        raise ValueError(f"{path} was trained with another vocabulary than {Path(folder) / DESCRIPTION} has")
    return model


def _loaded(folder):
    if not (path := Path(folder) / CHECKPOINT).exists():
        _check_is_run(folder)
    return load(path)


def load_layers(folder):
    """The model of a run, to look at its layers. Raises as `load` does, and ValueError for word vectors."""
    model, _ = _loaded(folder)
    if isinstance(model, Word2Vec):
        raise ValueError(f"{folder} has word vectors, which have no layers: `transformer-np neighbours` reads them")
    return model


def merge(folder, new):
    """Write the model of a run into a new run, with LoRA merged and all its weights: it needs no pretrained folder. It
    can be used like the old run, but not resumed.

    Raises FileNotFoundError and ValueError for a run without a usable model, FileExistsError if `new` has a run.
    """
    model, header = _loaded(folder)
    if (Path(new) / CHECKPOINT).exists():
        raise FileExistsError(f"{new} already has a model: choose another folder")
    create_run(new, read_json(Path(folder) / DESCRIPTION))
    kept = {name: header[name] for name in ("kind", "vocabulary") if name in header}
    save_checkpoint(Path(new) / CHECKPOINT, model_tensors(model), {**kept, **model_header(model)})


def merge_as_pretrained(folder, new):
    """As `merge`, but write a folder in Hugging Face's layout, with the tokenizer and the names of the classes.

    Raises also ValueError for a model that the layout cannot represent, and for a tokenizer of words, whose rules
    tokenizer.json cannot express.
    """
    model, _ = _loaded(folder)
    if not getattr(model, "layouts", ()):
        kind = type(model).__name__
        raise ValueError(f"{folder} has a {kind}; Hugging Face's layout is written of a GPT, Llama, BERT or T5 only")
    description, new = read_json_object(Path(folder) / DESCRIPTION), Path(new)
    tokenizer = as_pretrained(read_tokenizer(description.get("tokenizer")), around=isinstance(model, Bert))
    if (new / CONFIG).exists():
        raise FileExistsError(f"{new} already has a model: choose another folder")
    save_pretrained(model, new)
    settings, generation, texts = kept(description)
    if "labels" in description:
        names = {str(i): label for i, label in enumerate(description["labels"])}
        labels = {"id2label": names, "label2id": {label: int(i) for i, label in names.items()}}
        settings = {key: value for key, value in settings.items() if key != "problem_type"} | labels
    files = {CONFIG: read_json(new / CONFIG) | settings} | ({GENERATION: generation} if generation else {})
    files = {name: json.dumps(content, indent=2, ensure_ascii=False) + "\n" for name, content in files.items()}
    files |= {name: text for name, text in texts.items() if name in KEPT_TEXTS} | tokenizer
    for name, text in files.items():
        write_text(new / name, text)


def newest_run(*kinds, below="."):
    """The folder of the run of these kinds with the newest checkpoint, at most two levels below this folder.

    Raises FileNotFoundError, which says how to train one.
    """
    found = []
    for pattern in (CHECKPOINT, f"*/{CHECKPOINT}", f"*/*/{CHECKPOINT}"):
        for checkpoint in Path(below).glob(pattern):
            try:
                read_run(checkpoint.parent, *kinds)
            except (OSError, ValueError):
                continue
            found.append(checkpoint)
    if not found:
        how = f"train one with `transformer-np train {kinds[0]}`, or pass --model DIR"
        raise FileNotFoundError(f"no trained model found here: {how}")
    return max(found, key=lambda checkpoint: checkpoint.stat().st_mtime).parent


def free_folder(kind, below="runs"):
    """The first of runs/translate-1, runs/translate-2, … that does not exist."""
    number = 1
    while (Path(below) / f"{kind}-{number}").exists():
        number += 1
    return Path(below) / f"{kind}-{number}"
