"""The models, each with its config dataclass."""

from .bert import Bert, BertConfig
from .gpt import GPT, GPTConfig
from .llama import Llama, LlamaConfig
from .t5 import T5, T5Config
from .transformer import Transformer, TransformerConfig
from .transformer_xl import TransformerXL, TransformerXLConfig
from .word2vec import Word2Vec, Word2VecConfig

__all__ = [
    "GPT", "T5", "Bert", "BertConfig", "GPTConfig", "Llama", "LlamaConfig", "T5Config", "Transformer",
    "TransformerConfig", "TransformerXL", "TransformerXLConfig", "Word2Vec", "Word2VecConfig",
]  # fmt: skip
