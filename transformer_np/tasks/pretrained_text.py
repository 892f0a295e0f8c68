"""Text generation with a pretrained model: a folder in Hugging Face's layout instead of a training run."""

from ..models.decoder_only import DecoderOnly
from ..pretrained import PretrainedFolder
from ..pretrained.folder import check_ids
from .text import TextGenerator


class PretrainedTextGenerator(TextGenerator):
    """A pretrained GPT or Llama with its tokenizer: continues a text until a token that ends it.

    generator = PretrainedTextGenerator.load("folder")
    for piece in generator.stream("Once upon a time", temperature=0):
        print(piece, end="", flush=True)

    sampling, not_applied: as in `PretrainedFolder`
    ask: a function from what a person says to the text that the model continues, for a model of conversations; without
        it a prompt is continued as it is
    """

    def __init__(self, model, tokenizer, end_ids=(), sampling=None, not_applied=(), ask=None):
        super().__init__(model, tokenizer)
        self.ask = ask
        self.end_ids, self.sampling, self.not_applied = end_ids, sampling or {}, not_applied

    @classmethod
    def load(cls, folder, chat=False):
        """From a folder with a tokenizer.json; ValueError if its model cannot continue a text. chat: prompts are what a
        person says, put into the folder's template of a conversation"""
        found = PretrainedFolder(folder)
        model = found.model_for(DecoderOnly, "which cannot continue a text; a GPT or Llama can")
        ask = found.conversation if chat else None
        return cls(model, found.tokenizer, found.end_ids, found.sampling, found.not_applied, ask)

    def encode(self, prompt):
        """The ids of a prompt, as a list; ValueError if there are none."""
        # the template has the special tokens already
        ids = self.tokenizer.encode(self.ask(prompt), special=False) if self.ask else self.tokenizer.encode(prompt)
        if not ids:
            raise ValueError("the prompt is empty: there is nothing to continue")
        check_ids(ids, self.tokenizer, self.model.config.vocab_size)
        return ids
