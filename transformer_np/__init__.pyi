"""What editors and type checkers read for `__init__.py`, which loads these names on first use."""

from . import (
    data as data, decoding as decoding, functional as functional, gradcheck as gradcheck, homework as homework,
    layers as layers, lecture as lecture, masks as masks, models as models, module as module, plots as plots,
    pretrained as pretrained, tasks as tasks, training as training,
)
from .decoding import beam_search as beam_search, generate as generate, greedy_decode as greedy_decode
from .gradcheck import check_gradients as check_gradients
from .inspection import check_layer as check_layer, check_model as check_model
from .models import (
    Bert as Bert, BertConfig as BertConfig, GPT as GPT, GPTConfig as GPTConfig, Llama as Llama,
    LlamaConfig as LlamaConfig, T5 as T5, T5Config as T5Config, Transformer as Transformer,
    TransformerConfig as TransformerConfig, TransformerXL as TransformerXL,
    TransformerXLConfig as TransformerXLConfig, Word2Vec as Word2Vec, Word2VecConfig as Word2VecConfig,
)
from .tasks.t5 import TextToText as TextToText
from .tasks.translation import Translator as Translator
from .tasks.word2vec import WordVectors as WordVectors
from .tracing import trace as trace
from .training import (
    Adam as Adam, AdamW as AdamW, TeacherForcing as TeacherForcing, Trainer as Trainer,
    noam_schedule as noam_schedule,
)

__version__: str
