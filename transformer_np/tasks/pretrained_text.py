"""Text generation with a pretrained model: a folder in Hugging Face's layout instead of a training run."""

import json
from pathlib import Path

from ..models.decoder_only import DecoderOnly
from ..pretrained import PretrainedTokenizer, load_any
from .text import TextGenerator

ENDS = ("generation_config.json", "config.json")  # files that may name the end tokens; the first that does counts


class PretrainedTextGenerator(TextGenerator):
    """A pretrained GPT or Llama with its tokenizer: continues a text until a token that ends it.

    generator = PretrainedTextGenerator.load("folder")
    for piece in generator.stream("Once upon a time", temperature=0):
        print(piece, end="", flush=True)
    """

    def __init__(self, model, tokenizer, end_ids=()):
        super().__init__(model, tokenizer)
        self.end_ids = end_ids

    @classmethod
    def load(cls, folder):
        """From a folder with a tokenizer.json; ValueError if its model cannot continue a text."""
        folder = Path(folder)
        model = load_any(folder)
        if not isinstance(model, DecoderOnly):
            raise ValueError(
                f"{folder} holds a {type(model).__name__}, which cannot continue a text; a GPT or Llama can"
            )
        return cls(model, PretrainedTokenizer(folder), _end_ids(folder))

    def encode(self, prompt):
        """The ids of a prompt, as a list; ValueError if there are none."""
        ids = self.tokenizer.encode(prompt)
        if not ids:
            raise ValueError("the prompt is empty: there is nothing to continue")
        return ids

    def decode(self, ids):
        return self.tokenizer.decode(ids)


def _end_ids(folder):
    """The ids in eos_token_id, a number or a list."""
    for name in ENDS:
        path = folder / name
        if not path.is_file():
            continue
        try:
            ids = json.loads(path.read_text(encoding="utf-8")).get("eos_token_id")
        except (ValueError, AttributeError):
            raise ValueError(f"{path} is damaged: expected a JSON object") from None
        if ids is not None:
            return tuple(ids) if isinstance(ids, list) else (ids,)
    return ()
