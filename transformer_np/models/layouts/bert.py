"""BERT's layout: names, shapes and settings (Devlin et al. 2019, as in Hugging Face's BertModel and related classes).

Its matrices are (d_out, d_in), the transpose of ours. Google's own files name γ and β of a LayerNorm `gamma` and
`beta`; later files name them `weight` and `bias`.
"""

import re

from .layout import ACTIVATION_NAMES, Stored, activation, given, refuse, required

MODEL_TYPES, PREFIX = ("bert",), "bert."
BUFFERS = re.compile(r"embeddings\.(position_ids|token_type_ids)")  # 0, 1, 2, … and 0, 0, 0, …
HEADS = {"cls.seq_relationship.": "the next sentence", "cls.predictions.": "masked words", "classifier.": "classes"}


def _linear(theirs, ours, which=""):
    w, b = Stored((f"{ours}w{which}",), transposed=True), Stored((f"{ours}b{which}",))
    return {f"{theirs}.weight": w, f"{theirs}.bias": b}


def _norm(theirs, ours):
    return {f"{theirs}.weight": Stored((f"{ours}.gamma",)), f"{theirs}.bias": Stored((f"{ours}.beta",))}


MLM_HEAD = {
    **_linear("cls.predictions.transform.dense", "mlm_head.linear."),
    **_norm("cls.predictions.transform.LayerNorm", "mlm_head.norm"),
}
BIAS = {"cls.predictions.bias": Stored(("mlm_head.b",))}
UNTIED = {  # then another bias counts, and cls.predictions.bias is not used
    "cls.predictions.decoder.weight": Stored(("mlm_head.output.w",), transposed=True),
    "cls.predictions.decoder.bias": Stored(("mlm_head.b",)),
}
COPIES = {  # in the masked-language-model head: shared tensors that some files store twice
    "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
TIED, ALWAYS = True, ()
POOLER = _linear("pooler.dense", "pooler.linear.")


def standard_name(name):
    """The name of the LayerNorms' tensors in later files."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def read_config(settings, weights):
    """config.json and the tensors of the file  ->  the arguments of BertConfig

    The model gets the pooler and the heads that the file has. A classifier without a pooler, or of a
    BertForTokenClassification, is one of tokens. A masked-language-model head whose output is not tied to the word
    embedding needs both its tensors.
    dropout is hidden_dropout_prob: our attention weights have no dropout.
    """
    refuse(settings, {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False})
    pooler = any(name in weights for name in POOLER)
    tied = all(weights.equal(*pair) for pair in COPIES.items() if pair[0] in weights and pair[1] in weights)
    shape = weights.shape("classifier.weight") if "classifier.weight" in weights else ()  # (C, D)
    kinds = given(settings, "architectures", [])
    classes = shape[0] if len(shape) == 2 and "BertForMultipleChoice" not in kinds else None  # one score of each choice
    of_tokens = not pooler or "BertForTokenClassification" in kinds
    return dict(
        vocab_size=required(settings, "vocab_size"), max_len=required(settings, "max_position_embeddings"),
        d_model=required(settings, "hidden_size"), num_heads=required(settings, "num_attention_heads"),
        num_layers=required(settings, "num_hidden_layers"), d_ff=required(settings, "intermediate_size"),
        type_vocab_size=settings.get("type_vocab_size", 2), num_classes=None if of_tokens else classes,
        token_classes=classes if of_tokens else None, span_head="qa_outputs.weight" in weights, pooler=pooler,
        mlm_head=any(n in weights for n in MLM_HEAD) and (tied or all(n in weights for n in UNTIED)),
        tie_embeddings=tied, dropout=settings.get("hidden_dropout_prob", 0.1),
        activation=activation(settings, "hidden_act", "gelu"),
        layer_norm_eps=float(settings.get("layer_norm_eps", 1e-12)), pad_id=settings.get("pad_token_id") or 0,
    )  # fmt: skip


def duplicates(config):
    """Names of tensors in the file that repeat another tensor. Without its head, those of the head are left out."""
    return {*COPIES, *BIAS} if config.mlm_head else set()


def write_config(config):
    """BertConfig  ->  config.json"""
    c = config
    settings = {
        "architectures": ["BertModel"], "vocab_size": c.vocab_size, "max_position_embeddings": c.max_len,
        "hidden_size": c.d_model, "num_attention_heads": c.num_heads, "num_hidden_layers": c.num_layers,
        "intermediate_size": c.d_ff, "type_vocab_size": c.type_vocab_size,
        "hidden_act": ACTIVATION_NAMES[c.activation], "hidden_dropout_prob": c.dropout,
        "attention_probs_dropout_prob": 0.0, "layer_norm_eps": c.layer_norm_eps, "pad_token_id": c.pad_id,
        "position_embedding_type": "absolute",
    }  # fmt: skip
    if c.mlm_head:
        settings["architectures"] = ["BertForMaskedLM"]
        settings["tie_word_embeddings"] = c.tie_embeddings
    if c.span_head:
        settings["architectures"] = ["BertForQuestionAnswering"]
    classes = c.num_classes or c.token_classes
    if classes is not None:
        of = "Sequence" if c.num_classes is not None else "Token"
        settings["architectures"] = [f"BertFor{of}Classification"]
        settings["id2label"] = {str(i): f"LABEL_{i}" for i in range(classes)}
        settings["label2id"] = {f"LABEL_{i}": i for i in range(classes)}
    return settings


def prefix(config):
    """The prefix of the body's names in a written file: none without a head."""
    return PREFIX if heads(config) else ""


def body(config):
    """{name without prefix: Stored} for the tensors under the prefix"""
    tensors = {
        "embeddings.word_embeddings.weight": Stored(("embedding.table",)),
        "embeddings.position_embeddings.weight": Stored(("position.table",)),
        "embeddings.token_type_embeddings.weight": Stored(("segment.table",)),
        **_norm("embeddings.LayerNorm", "norm"),
    }
    for i in range(config.num_layers):
        theirs, ours = f"encoder.layer.{i}", f"blocks.{i}"
        for word in ("query", "key", "value"):
            tensors |= _linear(f"{theirs}.attention.self.{word}", f"{ours}.attention.", f"_{word[0]}")
        tensors |= _linear(f"{theirs}.attention.output.dense", f"{ours}.attention.", "_o")
        tensors |= _norm(f"{theirs}.attention.output.LayerNorm", f"{ours}.add_norm1.norm")
        tensors |= _linear(f"{theirs}.intermediate.dense", f"{ours}.feed_forward.", "1")
        tensors |= _linear(f"{theirs}.output.dense", f"{ours}.feed_forward.", "2")
        tensors |= _norm(f"{theirs}.output.LayerNorm", f"{ours}.add_norm2.norm")
    return {**tensors, **(POOLER if config.pooler else {})}


def heads(config):
    """{name: Stored} for the tensors outside the prefix"""
    tensors = {}
    if config.mlm_head:
        tensors = MLM_HEAD | (BIAS if config.tie_embeddings else UNTIED)
    if config.num_classes is not None or config.token_classes is not None:
        ours = "classifier." if config.num_classes is not None else "token_classifier."
        tensors = tensors | _linear("classifier", ours)
    return tensors | (_linear("qa_outputs", "span_head.") if config.span_head else {})


def writable(model):
    """The model. Raises ValueError for a pooling that the layout lacks, and for two classifiers."""
    if None not in (model.config.num_classes, model.config.token_classes):
        raise ValueError("BERT's layout has one classifier: of texts (num_classes) or of tokens (token_classes)")
    if model.config.pooling != "cls":
        raise ValueError(f'pooling is "{model.config.pooling}", but BERT\'s layout only has the pooler of [CLS], "cls"')
    return model
