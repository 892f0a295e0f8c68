"""Make pretrained.safetensors: what Hugging Face's own models compute for small folders in its layout, in float64.

    pip install torch==2.13.0 transformers==5.23.0 numpy safetensors
    PYTHONPATH=. python tests/reference/make_pretrained.py        (from the top of the repository)

Only this script needs PyTorch and transformers, the tests do not. A folder is made by `write_folder`, here and in the
tests alike: its tensors are listed by name and shape as Hugging Face has them, its values come from `draw`. Stored is
only what comes out of the models; Llamas, Qwen2 and Mistral compute their norms in float32 all the same.
"""

import json
import tempfile
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_name("pretrained.safetensors")

# B 3, S 7, D 12, H 3, F 10, V 13, context 17, segments 2, classes 5
GPT2 = {
    "model_type": "gpt2", "vocab_size": 13, "n_positions": 17, "n_embd": 12, "n_head": 3, "n_layer": 2, "n_inner": 10,
    "layer_norm_epsilon": 1e-3, "bos_token_id": 1, "eos_token_id": None,
}  # fmt: skip
BERT = {
    "model_type": "bert", "vocab_size": 13, "max_position_embeddings": 9, "hidden_size": 12, "num_attention_heads": 3,
    "num_hidden_layers": 2, "intermediate_size": 10, "layer_norm_eps": 1e-3, "pad_token_id": 0,
}  # fmt: skip
T5 = {
    "model_type": "t5", "vocab_size": 13, "d_model": 12, "d_kv": 5, "num_heads": 3, "num_layers": 2,
    "num_decoder_layers": 2, "d_ff": 10, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 6,
    "layer_norm_epsilon": 1e-3, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
    "feed_forward_proj": "relu",
}  # fmt: skip
CASES = {
    "gpt2_tied": ("GPT2LMHeadModel", GPT2),
    "gpt2_untied": ("GPT2LMHeadModel", {**GPT2, "tie_word_embeddings": False, "activation_function": "relu"}),
    "bert_pretraining": ("BertForPreTraining", BERT),
    "bert_classifier": (
        "BertForSequenceClassification",
        {**BERT, "hidden_act": "gelu_new", "id2label": {str(i): f"class {i}" for i in range(5)}},
    ),
    "bert_untied": ("BertForMaskedLM", {**BERT, "tie_word_embeddings": False}),
    "bert_tokens": ("BertForTokenClassification", {**BERT, "id2label": {str(i): f"class {i}" for i in range(5)}}),
    "bert_spans": ("BertForQuestionAnswering", BERT),
    "t5_v1_0": ("T5ForConditionalGeneration", T5),
    "t5_v1_1": ("T5ForConditionalGeneration", {**T5, "tie_word_embeddings": False, "feed_forward_proj": "gated-gelu"}),
}
LLAMA = {
    "vocab_size": 13, "hidden_size": 12, "intermediate_size": 10, "num_hidden_layers": 2,
    "max_position_embeddings": 40, "rms_norm_eps": 1e-3, "hidden_act": "silu", "bos_token_id": 1,
    "eos_token_id": None,
}  # fmt: skip
LLAMAS = {  # every case has its own D, H, G (heads of keys and values) and K
    # H·K is not D, the frequencies are scaled, the file is of the newer generation
    "llama": ("LlamaForCausalLM", {
        **LLAMA, "model_type": "llama", "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4,
        "tie_word_embeddings": False,
        "rope_parameters": {
            "rope_theta": 50.0, "rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 2.0,
            "original_max_position_embeddings": 16,
        },
    }),
    # biases on queries, keys and values; one head of keys and values for all
    "qwen2": ("Qwen2ForCausalLM", {
        **LLAMA, "model_type": "qwen2", "num_attention_heads": 3, "num_key_value_heads": 1,
        "tie_word_embeddings": True, "use_sliding_window": False, "sliding_window": 4, "max_window_layers": 2,
        "rope_theta": 100.0,
    }),
    # each token sees itself and the two before it
    "mistral": ("MistralForCausalLM", {
        **LLAMA, "model_type": "mistral", "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 6,
        "tie_word_embeddings": False, "sliding_window": 3, "rope_theta": 30.0,
    }),
    # tied; the file is of the older generation
    "smollm": ("LlamaForCausalLM", {
        **LLAMA, "model_type": "llama", "hidden_size": 20, "num_attention_heads": 10, "num_key_value_heads": 5,
        "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False, "pretraining_tp": 1,
        "rope_interleaved": False, "rope_scaling": {"type": "linear", "factor": 2.0}, "rope_theta": 20.0,
    }),
}  # fmt: skip
CASES |= LLAMAS
GPT_IDS = np.array([[4, 9, 4, 7, 3, 10, 2], [5, 4, 4, 2, 0, 12, 1], [6, 8, 3, 3, 7, 2, 11]])
BERT_IDS = np.array([[4, 9, 4, 7, 3, 10, 2], [5, 4, 4, 2, 1, 0, 0], [6, 8, 3, 0, 0, 0, 0]])  # 0 is padding
SEGMENTS = np.array([[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0]])
T5_SRC = np.array([[4, 9, 4, 7, 3, 10, 2, 5, 8, 1], [5, 4, 4, 2, 1, 0, 0, 0, 0, 0], [6, 8, 3, 12, 11, 4, 1, 0, 0, 0]])
T5_TGT_IN = np.array([[0, 9, 4, 7, 3, 10, 2, 6], [0, 4, 4, 2, 12, 3, 3, 5], [0, 8, 3, 2, 7, 7, 11, 4]])
NEW_TOKENS, LLAMA_NEW_TOKENS = 10, 12


def names_and_shapes(case):
    """{name: shape} of the tensors in the file, written down from Hugging Face's models."""
    _, c = CASES[case]
    if case in LLAMAS:
        return _names_and_shapes_of_llama(c)
    V, D, F = c["vocab_size"], 12, 10
    if c["model_type"] == "gpt2":
        shapes = {"transformer.wte.weight": (V, D), "transformer.wpe.weight": (17, D)}
        for h in ("transformer.h.0", "transformer.h.1"):
            norms, attention = [("ln_1", D), ("ln_2", D)], [("attn.c_attn", D, 3 * D), ("attn.c_proj", D, D)]
            for name, *shape in (*norms, *attention, ("mlp.c_fc", D, F), ("mlp.c_proj", F, D)):
                shapes |= {f"{h}.{name}.weight": tuple(shape), f"{h}.{name}.bias": (shape[-1],)}
        shapes |= {"transformer.ln_f.weight": (D,), "transformer.ln_f.bias": (D,)}
        return shapes if case == "gpt2_tied" else {**shapes, "lm_head.weight": (V, D)}

    if c["model_type"] == "t5":
        return _names_and_shapes_of_t5(case)

    def dense(name, d_in, d_out):
        return {f"{name}.weight": (d_out, d_in), f"{name}.bias": (d_out,)}

    def norm(name):
        return {f"{name}.weight": (D,), f"{name}.bias": (D,)}

    words, places, kinds = (f"bert.embeddings.{x}_embeddings.weight" for x in ("word", "position", "token_type"))
    shapes = {words: (V, D), places: (9, D), kinds: (2, D)} | norm("bert.embeddings.LayerNorm")
    for layer in ("bert.encoder.layer.0", "bert.encoder.layer.1"):
        for word in ("query", "key", "value"):
            shapes |= dense(f"{layer}.attention.self.{word}", D, D)
        shapes |= dense(f"{layer}.attention.output.dense", D, D) | norm(f"{layer}.attention.output.LayerNorm")
        shapes |= dense(f"{layer}.intermediate.dense", D, F)
        shapes |= dense(f"{layer}.output.dense", F, D) | norm(f"{layer}.output.LayerNorm")
    if case == "bert_tokens":
        return shapes | dense("classifier", D, 5)
    if case == "bert_spans":
        return shapes | dense("qa_outputs", D, 2)
    if case != "bert_untied":
        shapes |= dense("bert.pooler.dense", D, D)
    if case == "bert_classifier":
        return shapes | dense("classifier", D, 5)
    shapes |= dense("cls.predictions.transform.dense", D, D) | norm("cls.predictions.transform.LayerNorm")
    if case == "bert_untied":
        return shapes | {"cls.predictions.bias": (V,)} | dense("cls.predictions.decoder", D, V)
    return shapes | {"cls.predictions.bias": (V,)} | dense("cls.seq_relationship", D, 2)


def _names_and_shapes_of_t5(case):
    V, D, F, R, H, HK = 13, 12, 10, 8, 3, 15
    shapes = {"shared.weight": (V, D)}
    for side, attentions in (("encoder", ["SelfAttention"]), ("decoder", ["SelfAttention", "EncDecAttention"])):
        shapes |= {f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight": (R, H)}
        for block in (f"{side}.block.0", f"{side}.block.1"):
            for i, attention in enumerate(attentions):
                shapes |= {f"{block}.layer.{i}.{attention}.{x}.weight": (HK, D) for x in "qkv"}
                shapes |= {f"{block}.layer.{i}.{attention}.o.weight": (D, HK)}
            i = len(attentions)
            inner = ["wi"] if case == "t5_v1_0" else ["wi_0", "wi_1"]
            shapes |= {f"{block}.layer.{i}.DenseReluDense.{w}.weight": (F, D) for w in inner}
            shapes |= {f"{block}.layer.{i}.DenseReluDense.wo.weight": (D, F)}
            shapes |= {f"{block}.layer.{n}.layer_norm.weight": (D,) for n in range(i + 1)}
        shapes |= {f"{side}.final_layer_norm.weight": (D,)}
    return shapes if case == "t5_v1_0" else {**shapes, "lm_head.weight": (V, D)}


def _names_and_shapes_of_llama(c):
    V, D, F = c["vocab_size"], c["hidden_size"], c["intermediate_size"]
    H, G = c["num_attention_heads"], c["num_key_value_heads"]
    K = c.get("head_dim", D // H)
    shapes = {"model.embed_tokens.weight": (V, D)}
    for layer in ("model.layers.0", "model.layers.1"):
        for x, width in (("q", H * K), ("k", G * K), ("v", G * K)):
            shapes[f"{layer}.self_attn.{x}_proj.weight"] = (width, D)
            if c["model_type"] == "qwen2":
                shapes[f"{layer}.self_attn.{x}_proj.bias"] = (width,)
        shapes[f"{layer}.self_attn.o_proj.weight"] = (D, H * K)
        shapes |= {f"{layer}.mlp.gate_proj.weight": (F, D), f"{layer}.mlp.up_proj.weight": (F, D)}
        shapes[f"{layer}.mlp.down_proj.weight"] = (D, F)
        shapes |= {f"{layer}.input_layernorm.weight": (D,), f"{layer}.post_attention_layernorm.weight": (D,)}
    shapes["model.norm.weight"] = (D,)
    return shapes if c["tie_word_embeddings"] else {**shapes, "lm_head.weight": (V, D)}


def draw(name, shape):
    """The values of one tensor, of order 1: γ around 1, vectors 0.5, matrices 1/√12; the same on every machine."""
    values = np.random.default_rng(list(name.encode())).standard_normal(shape)
    if len(shape) == 2:
        return values if "relative_attention_bias" in name else values / 12**0.5
    gamma = name.endswith("weight")
    return 1 + 0.3 * values if gamma else 0.5 * values


def tensors(case):
    return {name: draw(name, shape).astype(np.float32) for name, shape in names_and_shapes(case).items()}


def dlogits():
    """The gradient that the backward of a Llama starts from, (B, T, V)."""
    return draw("dlogits", (*GPT_IDS.shape, LLAMA["vocab_size"]))


def write_folder(folder, settings, values):
    """config.json and model.safetensors, float32."""
    from safetensors.numpy import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))
    save_file({name: np.ascontiguousarray(array) for name, array in values.items()}, folder / "model.safetensors")
    return folder


# --- Hugging Face's side ---------------------------------------------------------------------------------------------


def compute(case, folder):
    """Everything that is stored for one case."""
    import torch
    import transformers

    model = getattr(transformers, CASES[case][0]).from_pretrained(folder, dtype=torch.float64).eval()
    if case in LLAMAS:
        return compute_llama(model)
    with torch.no_grad():
        if case.startswith("gpt2"):
            prompt = torch.from_numpy(GPT_IDS)
            text = model.generate(
                prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=NEW_TOKENS, do_sample=False,
                pad_token_id=0,
            )  # fmt: skip
            return {"logits": model(prompt).logits, "greedy": text}
        if case.startswith("t5"):
            src, tgt_in = torch.from_numpy(T5_SRC), torch.from_numpy(T5_TGT_IN)
            given = {"input_ids": src, "attention_mask": (src != 0).long()}
            logits = model(**given, decoder_input_ids=tgt_in).logits
            return {"logits": logits, "greedy": model.generate(**given, max_new_tokens=NEW_TOKENS, do_sample=False)}
        ids, segments = torch.from_numpy(BERT_IDS), torch.from_numpy(SEGMENTS)
        given = {"attention_mask": (ids != 0).long(), "token_type_ids": segments}
        output, body = model(ids, **given), model.bert(ids, **given)
        if case == "bert_spans":
            return {"logits": torch.stack([output.start_logits, output.end_logits], dim=-1)}
        logits = output.prediction_logits if case == "bert_pretraining" else output.logits
        if body.pooler_output is None:
            return {"logits": logits}
        return {"hidden": body.last_hidden_state, "pooled": body.pooler_output, "logits": logits}


def compute_llama(model):
    """Its logits, a greedy text, and the gradient of Σ dlogits · logits with respect to every tensor, by autograd."""
    import torch

    ids = torch.from_numpy(GPT_IDS)
    logits = model(ids).logits
    (logits * torch.from_numpy(dlogits())).sum().backward()
    gradients = {f"gradient.{name}": parameter.grad for name, parameter in model.named_parameters()}
    text = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=LLAMA_NEW_TOKENS, do_sample=False, pad_token_id=0
    )
    with torch.no_grad():
        first, second = model(text).logits[:, GPT_IDS.shape[1] - 1 : -1].topk(2).values.unbind(-1)
    margin = float((first - second).min())
    assert margin > 1e-4, f"the greedy text hangs on a difference of {margin}"
    return {"logits": logits.detach(), "greedy": text, **gradients}


def store():
    """Write what is computed for the folders of all cases."""
    import torch
    import transformers
    from safetensors.numpy import save_file

    stored = {}
    with tempfile.TemporaryDirectory() as folder:
        for case, (_, settings) in CASES.items():
            made = write_folder(Path(folder) / case, settings, tensors(case))
            stored |= {f"{case}.{key}": value.numpy().copy() for key, value in compute(case, made).items()}
    versions = f"torch {torch.__version__}, transformers {transformers.__version__}"
    save_file(stored, PATH, {"made by": f"{Path(__file__).name}, {versions}"})
    print(f"{PATH}: {len(stored)} tensors, {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    store()
