"""The arguments of the examples in the reference that `examples` cannot make by itself, as one types them into Python.

An entry has the source of each argument, in order; other names are set before the call. Below SHOWN is what is asked of
the `result`, where its kind or shape says little.
"""

SHOWN = "→"

_MODEL = "models.Transformer(models.TransformerConfig(9, 9, 8, 2, 1, 1, 16))"
_GPT = "models.GPT(models.GPTConfig(9, max_len=8, d_model=8, num_heads=2, num_layers=1))"
_FORWARD = {"model": _MODEL, "logits": "model(np.array([[4, 5, 6]]), np.array([[1, 4]]))"}
_BACKWARD = {**_FORWARD, "nothing": "model.backward(np.ones_like(logits))"}
_HEADS = {"weights": "np.full((2, 3, 3), 1 / 3)", "queries": "['a', 'b', 'c']", "keys": "['a', 'b', 'c']"}
_LAYER = {"layer": "layers.MultiHeadAttention(8, 2)", "y": "layer(np.ones((1, 3, 8), np.float32))"}
IMPORTED = {  # by the sources below
    "datetime": ("date",),
    "pathlib": ("Path",),
    "transformer_np": (
        *("complexity", "data", "decoding", "functional", "homework", "inspection", "layers", "lecture", "masks"),
        *("models", "module", "plots", "pretrained", "training"),
    ),
    "transformer_np.grading": ("report",),
    "transformer_np.homework": ("exercise",),
    "transformer_np.tasks": ("copying", "mlm", "runs", "translation"),
    "transformer_np.training": ("History",),
}
_LOGITS, _SRC, _TGT = "rng.normal(size=(2, 9))", "np.array([[4, 5, 6]])", "np.array([[1, 4]])"
_BERT = "models.Bert(models.BertConfig(9, 8, 8, 2, 1, 16, num_classes=2))"
_XL = "models.TransformerXL(models.TransformerXLConfig(9, d_model=8, num_heads=2, num_layers=1, mem_len=4))"
_CHARS = "data.CharTokenizer.train(['good', 'bad'])"
_OF_CHARS = "models.GPT(models.GPTConfig(len({}), max_len=8, d_model=8, num_heads=2, num_layers=1))"
_PARTS = "inspection.{}{{'blocks.0.attention': np.array([0.3, -0.2])}}, {{'blocks.0.feed_forward': 0.4}}, {})"
_CURVE = "complexity.Curve('self-attention', 'time', 'n', (64, 128), (1.0, 4.0), 2)"
_RUN = {
    "made": "runs.create_run('.', {'kind': 'gpt'})",
    "saved": f"training.save_model('checkpoint.safetensors', {_GPT})",
}
_ANSWERS = {"written": "Path('homework.py').write_text('def softmax(x):\\n    return x\\n')"}
_TRANSLATOR = {
    "words": "data.WordTokenizer.train(['a b c'], min_count=1)",
    "model": "models.Transformer(models.TransformerConfig(len(words), len(words), 8, 2, 1, 1, 16))",
}
CALLS = {  # {module: {function: {argument: its source}}}
    "masks": {
        "causal_mask": {"T": "4"},
        "padding_mask": {"ids": "np.array([[5, 6, 0], [7, 0, 0]])", "pad_id": "0"},
        "window_mask": {"T": "5", "window": "1"},
        "additive": {"mask": "masks.causal_mask(3)"},
        "hide": {"scores": "rng.normal(size=(3, 3))", "masks": "(masks.causal_mask(3),)"},
    },
    "decoding": {
        "log_softmax": {"logits": _LOGITS},
        "greedy_decode": {"model": _MODEL, "src": _SRC, "max_len": "5"},
        "beam_search": {"model": _MODEL, "src": _SRC, "beam_size": "2"},
        "sampling_distribution": {"logits": _LOGITS, "temperature": "0.5", "top_k": "3"},
        "generate": {"model": _GPT, "prompt": _SRC, "max_new_tokens": "5", "temperature": "0"},
        "KeyValueCache": {},
        "DecoderCache": {"num_blocks": "2"},
        "Excluding": {"model": _GPT, "ids": "[3]"},
        "Hypothesis": {"ids": "[5, 6]", "log_prob": "-1.5", "score": "-1.2"},
        "greedy_steps": {
            "model": _MODEL, "src": _SRC, "max_len": "3",
            SHOWN: "[log_probs.shape for tokens, log_probs in result][0]",
        },
        "generate_steps": {
            "model": _GPT, "prompt": _SRC, "max_new_tokens": "2", SHOWN: "[ids.shape for ids in result]",
        },
    },
    "data": {
        "pad_batch": {"sequences": "[[5, 6, 7], [8]]"},
        "shift_right": {"ids": "[5, 6, 7]", "bos_id": "1"},
        "as_encoder_input": {"ids": "[5, 6, 7]", "max_len": "4"},
        "mask_tokens": {"ids": "np.array([[2, 5, 6, 3]])", "vocab_size": "9", "rng": "0"},
        "split_pairs": {"pairs": "[(f'word {i}', f'palavra {i}') for i in range(20)]", "validation": "0.2"},
        "split_text": {"text": "'to be or not to be ' * 10", "validation": "0.2"},
        "validation_batches": {"ids": "np.arange(60)", "block_size": "8", "batch_size": "2"},
        "written_dates": {"size": "5"},
        "sentiment_sentences": {"size": "600"},
        "count_spans": {"length": "100", "density": "0.15"},
        "choose_spans": {"length": "100", "rng": "0"},
        "corrupt_spans": {"ids": "[5, 6, 7, 8, 9, 10]", "sentinels": "[90, 91, 92]", "rng": "0"},
        "BPETokenizer": {"merges": "[[101, 102], [260, 103]]"},
        "CharTokenizer": {"vocabulary": "['<pad>', '<bos>', '<eos>', '<unk>', 'a']", SHOWN: "result.encode('ab')"},
        "WordTokenizer": {"vocabulary": "['<pad>', '<bos>', '<eos>', '<unk>', 'a']", SHOWN: "result.encode('a b')"},
        "PlainWordTokenizer": {
            "vocabulary": "['<pad>', '<bos>', '<eos>', '<unk>', 'a']", SHOWN: "result.encode('a, b')",
        },
        "LabelledBatches": {
            "texts": "[([1, 5, 2], 0), ([1, 6, 2], 1)]", "batch_size": "2", SHOWN: "result.batch(0).labels.shape",
        },
        "LargeText": {"written": "Path('a.txt').write_text('to be')", "path": "'a.txt'", SHOWN: "len(result)"},
        "MaskedBatches": {
            "texts": "[[1, 5, 2], [1, 6, 2]]", "batch_size": "2", "vocab_size": "9",
            SHOWN: "result.batch(0).ids.shape",
        },
        "MixedBatches": {
            "pairs": "[([5, 6, 7], [8, 9]), ([5, 6], [8])]",
            "parts": "[data.Seq2SeqBatches(pairs, 1), data.Seq2SeqBatches(pairs, 2)]",
            SHOWN: "len(result.batch(0).src)",
        },
        "PackedPairs": {"pairs": "[([5, 6, 7], [8, 9]), ([5, 6], [8])]", SHOWN: "result[1]"},
        "SentinelTokenizer": {
            "tokenizer": _CHARS, "count": "2", SHOWN: "result.decode(result.encode('a<extra_id_0>'))",
        },
        "Seq2SeqBatches": {
            "pairs": "[([5, 6, 7], [8, 9]), ([5, 6], [8])]", "batch_size": "2", SHOWN: "result.batch(0).tgt_in.shape",
        },
        "SkipGrams": {
            "ids": "np.arange(4, 24) % 9 + 4", "vocab_size": "13", "window": "2", "negatives": "3",
            SHOWN: "result.batch(0).negatives.shape[1]",
        },
        "SpanBatches": {
            "ids": "np.arange(5, 45)", "sentinels": "range(90, 99)", "block_size": "8", "batch_size": "2",
            SHOWN: "len(result.batch(0).src)",
        },
        "TextBatches": {
            "ids": "np.arange(60)", "block_size": "8", "batch_size": "2", SHOWN: "result.batch(0).ids.shape",
        },
        "TextStreams": {
            "ids": "np.arange(60)", "segment_len": "8", "batch_size": "2", SHOWN: "result.batch(0).ids.shape",
        },
        "documentation_text": {SHOWN: "len(result) > 100_000"},
        "encode_text": {"tokenizer": _CHARS, "text": "'good'"},
        "english_portuguese": {SHOWN: "result[0]"},
        "join_spans": {
            "corrupted": "[5, 90, 8]", "target": "[90, 6, 7, 91]", "sentinels": "[90, 91]", SHOWN: "result",
        },
        "labels_of": {"split": "data.Split([('fine', 'good'), ('dull', 'bad')], [], [])"},
        "open_text": {"written": "Path('a.txt').write_text('to be')", "path": "'a.txt'"},
        "read_labelled": {"written": "Path('a.tsv').write_text('good\\tI liked it\\n')", "path": "'a.tsv'"},
        "read_pairs": {"written": "Path('a.tsv').write_text('good\\tbom\\n')", "path": "'a.tsv'"},
        "read_text": {"written": "Path('a.txt').write_text('to be')", "path": "'a.txt'"},
        "read_vectors": {
            "written": "Path('a.vec').write_text('2 3\\nking 1 2 3\\nqueen 4 5 6\\n')", "path": "'a.vec'",
            SHOWN: "result[0], result[1].shape",
        },
        "sentinel": {"number": "0"},
        "with_mask": {"tokenizer": _CHARS, SHOWN: "result.token(len(result) - 1)"},
        "write_date": {"day": "date(2045, 12, 18)", "form": "data.dates.FORMATS[0]"},
        "write_vectors": {"path": "'a.vec'", "words": "['king', 'queen']", "vectors": "np.ones((2, 3))"},
    },
    "training": {
        "noam_schedule": {"step": "10", "d_model": "64", "warmup": "300"},
        "cosine_schedule": {"step": "10", "max_lr": "0.002", "min_lr": "0.0", "warmup": "5", "total": "100"},
        "clip_grad_norm": {"parameters": f"{_GPT}.parameters()", "max_norm": "1.0"},
        "Adam": {"parameters": f"{_GPT}.parameters()"},
        "AdamW": {"parameters": f"{_GPT}.parameters()", "weight_decay": "0.1", "decays": "training.is_matrix"},
        "Classification": {"model": _BERT},
        "History": {"losses": "[3.0, 2.5]", "learning_rates": "[0.1, 0.2]"},
        "MaskedLanguageModel": {"model": _BERT},
        "NegativeSampling": {"model": "models.Word2Vec(models.Word2VecConfig(9, 4))"},
        "NextToken": {"model": _GPT},
        "SGD": {"parameters": f"{_GPT}.parameters()", "momentum": "0.9"},
        "SegmentRecurrence": {"model": _XL},
        "TeacherForcing": {"model": _MODEL, "label_smoothing": "0.1"},
        "Trainer": {
            "model": _GPT, "optimizer": "training.Adam(model.parameters())", "objective": "training.NextToken(model)",
            "batches": "data.TextBatches(np.arange(9), block_size=4, batch_size=2)",
            SHOWN: "len(result.fit(batches, steps=3, progress=False).losses)",
        },
        "Muon": {"model": _GPT, "parameters": "model.parameters()", "matrices": "training.in_blocks(model)"},
        "in_blocks": {"model": _GPT, SHOWN: "[name for name, p in model.named_parameters() if result(p)][:4]"},
        "orthogonalised": {
            "g": "np.diag([2.0, 1.0, 0.1])", SHOWN: "np.linalg.svd(result)[1].round(1)",
        },
        "is_matrix": {"parameter": "module.Parameter(np.zeros((2, 3)))", SHOWN: "result"},
        "load_checkpoint": {
            "saved": "training.save_checkpoint('a.safetensors', {'w': np.zeros(3)}, {'step': 10})",
            "path": "'a.safetensors'", SHOWN: "result",
        },
        "load_model": {
            "saved": f"training.save_model('a.safetensors', {_GPT})", "path": "'a.safetensors'",
            SHOWN: "result[0].num_parameters()",
        },
        "save_checkpoint": {"path": "'a.safetensors'", "tensors": "{'w': np.zeros(3)}", "header": "{'step': 10}"},
        "save_model": {"path": "'a.safetensors'", "model": _GPT},
    },
    "plots": {
        "Product": {"title": "'a copy'", "terms": "[('A', np.eye(2)), '=', ('B', np.eye(2))]"},
        "architecture": {"model": _MODEL},
        "attention": _HEADS,
        "attention_maps": {**_FORWARD, "kind": "'cross'"},
        "attention_products": {**_LAYER, "words": "['a', 'b', 'c']"},
        "attribution": {"estimate": _PARTS.format("Effects(0.5, ", "{}")},
        "class_results": {"results": "[report.ClassResult('softmax', {'right': 3, 'wrong': 1}, {'no maximum': 1})]"},
        "contributions": {"parts": _PARTS.format("Contributions(0.5, ", "0.0")},
        "copy_curves": {"curves": "copying.CopyCurves([10, 20], {'GPT': [0.1, 0.2]}, 0.125, 2, 4)"},
        "decoding_steps": {"steps": "[[('house', -0.2), ('home', -1.9)], [('<eos>', -0.1)]]"},
        "gradient_distance": {"norms": "{'attention': [1.0, 0.9, 0.8], 'RNN': [1.0, 0.5, 0.25]}"},
        "gradient_flow": _BACKWARD,
        "gradient_norms": _BACKWARD,
        "head_ablation": {"table": "inspection.HeadAblation(2.0, {'encoder.0': np.array([2.1, 2.0])})"},
        "head_view": _HEADS,
        "layer_norm_products": {"layer": "layers.LayerNorm(4)", "x": "rng.normal(size=(2, 4)).astype('float32')"},
        "likeliest": {"logits": _LOGITS, "count": "3"},
        "logit_lens": {"logits": "rng.normal(size=(3, 2, 9))", "read": "['a', 'b']"},
        "loss_curves": {"losses": "{'seed 0': [3.0, 2.0], 'seed 1': [3.1, 1.9]}"},
        "mask": {"mask": "masks.causal_mask(4)"},
        "matrices": {"products": "[plots.Product('a product', [('A', np.eye(2)), '·', ('B', np.ones((2, 2)))])]"},
        "model_view": {"weights": "np.full((2, 2, 3, 3), 1 / 3)"},
        "positional_encoding": {"length": "8", "d_model": "16"},
        "principal_components": {"vectors": "rng.normal(size=(9, 4))", "count": "2"},
        "progress": {"chapters": "{'attention': (3, 1, 6), 'training': (0, 0, 5)}"},
        "relative_bias": {"model": "models.T5(models.T5Config(9, 8, 2, 4, 1, 1, 16))", "longest": "16"},
        "sampling": {"logits": "rng.normal(size=9)"},
        "softmax_saturation": {"scores": "[1.0, 0.5, -1.0]", "d_k": "64"},
        "training_curve": {"history": "History([3.0, 2.5, 2.2], [0.1, 0.2, 0.1], [(3, 2.4)])"},
        "translator_attention": {
            **_TRANSLATOR,
            "translator": "translation.Translator(model, words, words)",
            "sentence": "'b a'",
        },
        "wavelengths": {"length": "50", "d_model": "16"},
        "word_map": {"words": "['one', 'two', 'three', 'red']", "vectors": "rng.normal(size=(4, 8))"},
        "complexity_curves": {"curves": f"[{_CURVE}]"},
        "explore_live": {"tokenizers": _CHARS, "model": _OF_CHARS.format("tokenizers"), "text": "'good'"},
    },
    "homework": {
        "find": {"name": "'softmax'"},
        "check": {"name": "'softmax'", "answer": "functional.softmax", "quiet": "True"},
        "using": {"answers": "{'softmax': functional.softmax}"},
        "all_exercises": {SHOWN: "len(result) > 50"},
        "check_all": {
            **_ANSWERS, "submission": "homework.load('homework.py')",
            SHOWN: "next(verdict.outcome for exercise, verdict in result if exercise.name == 'softmax')",
        },
        "progress": {
"written": "Path('progress.json').write_text('{}')", "folder": "'.'",
        },
        "load": {**_ANSWERS, "path": "'homework.py'", SHOWN: "list(result.answers)"},
    },
    "tasks.classify": {
        "ClassifyOptions": {"data": "'reviews.tsv'", "dropout": "0.2"},
        "ClassifyTask": {},
        "Classifier": {
            "tokenizer": _CHARS,
            "model": "models.Bert(models.BertConfig(len(tokenizer), 16, 8, 2, 1, 16, num_classes=2))",
            "labels": "['bad', 'good']", SHOWN: "list(result.probabilities('a good dog'))",
        },
    },
    "tasks.copying": {
        "copy_experiment": {"steps": "2", "every": "1"},
        "CopyCurves": {
            "steps": "[10, 20]", "accuracies": "{'GPT': [0.1, 0.2]}", "chance": "0.125", "lag": "2",
            "segment_len": "4",
        },
        "CopyStreams": {"symbols": "4", "lag": "1", SHOWN: "result.batch(0).ids.shape"},
    },
    "tasks.mlm": {
        "MLMOptions": {"text": "'texts.txt'", "steps": "100"},
        "MLMTask": {},
        "config": {"options": "mlm.MLMOptions()", "vocab_size": "9"},
    },
    "tasks.t5": {
        "T5Options": {"tasks": "'sentiment,date'", "steps": "100"},
        "T5Task": {},
        "TextToText": {
            "tokenizer": f"data.SentinelTokenizer({_CHARS}, 2)",
            "model": "models.T5(models.T5Config(len(tokenizer), 8, 2, 4, 1, 1, 16))",
            SHOWN: "result.encode('a good dog').shape",
        },
    },
    "tasks.text": {
        "GPTOptions": {"text": "'texts.txt'", "block_size": "32"},
        "GPTTask": {},
        "TextGenerator": {
            "tokenizer": _CHARS, "model": _OF_CHARS.format("tokenizer"),
            SHOWN: "result.generate('good', 3, temperature=0)[:4]",
        },
    },
    "tasks.translation": {
        "TranslationOptions": {"pairs": "'pairs.tsv'", "tokens": "'char'", "steps": "100"},
        "TranslationTask": {},
        "Translator": {
            **_TRANSLATOR, "src_tokenizer": "words", "tgt_tokenizer": "words", SHOWN: "result.encode('b a').shape",
        },
        "format_steps": {
            **_TRANSLATOR, "translator": "translation.Translator(model, words, words)", "sentence": "'b a'",
            SHOWN: "next(result)",
        },
    },
    "tasks.word2vec": {
        "Word2VecOptions": {"text": "'texts.txt'", "window": "5"},
        "Word2VecTask": {},
        "WordVectors": {
            "words": "['king', 'queen', 'man']", "vectors": "np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])",
            SHOWN: "result.neighbours('king', 1)[0][0]",
        },
    },
    "tasks.xl": {
        "XLOptions": {"text": "'texts.txt'", "mem_len": "32"},
        "XLTask": {},
        "XLTextGenerator": {
            "tokenizer": _CHARS,
            "model": "models.TransformerXL(models.TransformerXLConfig(len(tokenizer), 8, 2, 1, mem_len=4))",
            SHOWN: "result.generate('good', 3, temperature=0)[:4]",
        },
    },
    "blocks": {
        "AddNorm": {"d_model": "8"},
        "DecoderBlock": {"d_model": "8", "num_heads": "2", "d_ff": "16"},
        "EncoderBlock": {"d_model": "8", "num_heads": "2", "d_ff": "16"},
    },
    "complexity": {
        "Curve": {
            "name": "'self-attention'", "quantity": "'time'", "variable": "'n'", "sizes": "(64, 128)",
            "values": "(1.0, 4.0)", "expected": "2", SHOWN: "round(result.exponent, 6), result.agrees",
        },
        "counts": {"lengths": "(4, 8)", SHOWN: "result.splitlines()[2]"},
        "factor_per_step": {"norms": "[1.0, 0.5, 0.25, 0.125]", SHOWN: "round(result, 6)"},
        "fit_exponent": {"sizes": "[64, 128, 256]", "values": "[1.0, 4.0, 16.0]", SHOWN: "round(result, 6)"},
        "gradient_by_distance": {
            "make_layer": "lambda d, rng: layers.RNN(d, d, rng=rng)", "length": "5", "d": "4", "seeds": "1",
        },
        "gradients": {SHOWN: "sorted(result)"},
        "measure_memory": {"kind": "complexity.KINDS[0]", "sizes": "[64, 128]", SHOWN: "result.quantity, result.sizes"},
        "measure_time": {
            "kind": "complexity.KINDS[0]", "variable": "'n'", "sizes": "[64, 128]", "rounds": "1", "least": "0.0",
            SHOWN: "result.quantity, result.sizes",
        },
        "path_length": {"kind": "complexity.KINDS[1]", "n": "16", SHOWN: "result"},
        "sequential_operations": {"kind": "complexity.KINDS[0]", "n": "16", SHOWN: "result"},
        "table": {"curves": f"[{_CURVE}]", SHOWN: "result.splitlines()[-1]"},
    },
    "gradcheck": {
        "check_gradients": {
            "target": "layers.LayerNorm(3)", "inputs": "rng.normal(size=(2, 3))", SHOWN: "result.passed",
        },
        "standard_checks": {"seed": "0", SHOWN: "len(result) > 50"},
    },
    "homework.exercise": {
        "Case": {"label": "'a row'", "arguments": "(np.zeros(3),)", SHOWN: "result.label"},
        "Result": {"name": "'y'"},
        "call": {"answer": "np.sum", "arguments": "np.ones(3)", SHOWN: "float(result)"},
        "draw_sizes": {"rng": "np.random.default_rng(0)", "letters": "'B T D'", SHOWN: "sorted(result)"},
        "public_home": {
            "name": "'softmax'", "value": "functional.softmax", "found_in": "'transformer_np.functional.core'",
        },
        "extended": {"case": "exercise.Case('a row', (np.zeros(3),))", SHOWN: "result.extended"},
    },
    "inspection": {
        "HeadAblation": {"baseline": "2.0", "without": "{'attention': np.array([2.5, 2.0])}", SHOWN: "result.changes"},
        "Contributions": {
            "embedding": "0.5", "heads": "{'attention': np.array([1.0, 0.25])}", "feed_forwards": "{'ffn': -0.5}",
            "biases": "0.0", SHOWN: "result.total",
        },
        "Effects": {
            "score": "2.0", "heads": "{'attention': np.array([-0.5, 0.0])}", "feed_forwards": "{}", "positions": "{}",
            SHOWN: "result.heads",
        },
        "attribution": {"model": _GPT, "inputs": _SRC, "target": "7", SHOWN: "list(result.heads)"},
        "contributions": {"model": _GPT, "inputs": _SRC, "target": "(7, 8)", SHOWN: "list(result.heads)"},
        "measured": {"model": _GPT, "inputs": _SRC, "target": "7", SHOWN: "list(result.feed_forwards)"},
        "attention_rollout": {"weights": "np.full((2, 1, 3, 3), 1 / 3)"},
        "check_layer": {
            "layer": "layers.Linear(4, 3)", "inputs": "rng.normal(size=(2, 4))", SHOWN: "result.passed",
        },
        "check_model": {"model": _GPT, "batch": "np.array([[4, 5, 6], [7, 8, 4]])", SHOWN: "result.passed"},
        "head_ablation": {
            "model": _GPT, "measure": "lambda: model(np.array([[4, 5]])).mean()", SHOWN: "list(result.without)",
        },
        "logits_by_layer": {"model": _GPT, "inputs": _SRC},
    },
    "layers": {
        "add_lora": {"model": _GPT, "rank": "2"},
        "merge_lora": {"model": f"layers.add_lora({_GPT}, 2)"},
    },
    "lecture": {
        "attention_memory": {"n": "16", "num_heads": "2", SHOWN: "result"},
        "block_parts": {SHOWN: "result['cross-attention']"},
        "exercises": {SHOWN: "[exercise.letters for exercise in result]"},
        "feed_forward_example": {SHOWN: "result.output.shape"},
        "five_positions": {SHOWN: "result.output.shape"},
        "five_words": {SHOWN: "result.weights.shape"},
        "format_examples": {"examples": "lecture.worked_examples()", "width": "80", SHOWN: "result.split()[:3]"},
        "format_exercises": {"exercises": "lecture.exercises()", "width": "80", SHOWN: "result.splitlines()[0]"},
        "format_statements": {"statements": "lecture.read_statements()", "width": "80", SHOWN: "len(result) > 1000"},
        "four_words": {SHOWN: "result.weights.shape"},
        "hidden_row": {SHOWN: "sorted(result)"},
        "masked_weights": {SHOWN: "sorted(result)"},
        "nearest_return": {"d_model": "4", "length": "1000", SHOWN: "result[0]"},
        "read_statements": {SHOWN: "result[0].verdict"},
        "summary": {"examples": "lecture.worked_examples()", SHOWN: "result[:18]"},
        "three_heads": {SHOWN: "result.weights.shape"},
        "two_words": {SHOWN: "result.weights.round(2)"},
        "verdict": {"printed": "[0.33]", "computed": "[1 / 3]", "digits": "2"},
        "worked_examples": {SHOWN: "result[0].verdict"},
    },
    "models": {
        "Bert": {"config": "models.BertConfig(9, 8, 8, 2, 1, 16)"},
        "BertConfig": {"vocab_size": "9", "max_len": "8", "d_model": "8", "num_heads": "2"},
        "GPT": {"config": "models.GPTConfig(9, max_len=8, d_model=8, num_heads=2, num_layers=1)"},
        "GPTConfig": {"vocab_size": "9", "max_len": "8", "d_model": "8", "num_heads": "2"},
        "Llama": {"config": "models.LlamaConfig(9, max_len=8, d_model=8, num_heads=2, num_layers=1)"},
        "LlamaConfig": {"vocab_size": "9", "max_len": "8", "d_model": "8", "num_heads": "2", "num_kv_heads": "1"},
        "T5": {"config": "models.T5Config(9, 8, 2, 4, 1, 1, 16)"},
        "T5Config": {"vocab_size": "9", "d_model": "8", "num_heads": "2", "d_head": "4"},
        "Transformer": {"config": "models.TransformerConfig(9, 9, 8, 2, 1, 1, 16)"},
        "TransformerConfig": {"src_vocab_size": "9", "tgt_vocab_size": "9", "d_model": "8", "num_heads": "2"},
        "TransformerXL": {"config": "models.TransformerXLConfig(9, d_model=8, num_heads=2, num_layers=1)"},
        "TransformerXLConfig": {"vocab_size": "9", "d_model": "8", "num_heads": "2"},
        "Word2Vec": {"config": "models.Word2VecConfig(9, 4)"},
        "Word2VecConfig": {"vocab_size": "9", "d_model": "4"},
    },
    "module": {
        "Parameter": {"data": "np.zeros((2, 3))", SHOWN: "result.grad.shape"},
        "forward_part": {"method": "layers.Linear.forward", SHOWN: "result.__name__"},
        "as_parameters": {"parameters": f"{_GPT}.parameters()", SHOWN: "len(result)"},
    },
    "pretrained": {
        "load_any": {"saved": f"pretrained.save_pretrained({_GPT}, 'my-gpt')", "folder": "'my-gpt'"},
        "load_pretrained": {
            "saved": f"pretrained.save_pretrained({_GPT}, 'my-gpt')", "cls": "models.GPT", "folder": "'my-gpt'",
        },
        "save_pretrained": {"model": _GPT, "folder": "'my-gpt'"},
    },
    "tasks": {
        "task_of": {"kind": "'gpt'", SHOWN: "type(result).__name__"},
        "all_tasks": {SHOWN: "[task.kind for task in result]"},
    },
    "tasks.runs": {
        "create_run": {"folder": "'runs/gpt-1'", "description": "{'kind': 'gpt'}"},
        "free_folder": {"kind": "'gpt'", SHOWN: "result.as_posix()"},
        "load_layers": {**_RUN, "folder": "'.'"},
        "load_run_model": {**_RUN, "folder": "'.'", "tokenizers": "{}"},
        "merge": {**_RUN, "folder": "'.'", "new": "'merged'"},
        "newest_run": {**_RUN, "kinds": "'gpt'", SHOWN: "result.as_posix()"},
        "nothing_saved": {"folder": "'runs/gpt-1'", SHOWN: "result.split(':')[0]"},
        "read_run": {"made": _RUN["made"], "folder": "'.'", "kinds": "'gpt'"},
        "replace_run": {"folder": "'runs/gpt-1'", "description": "{'kind': 'gpt'}"},
        "sum_of_vocabulary": {"tokenizers": f"{{'tokenizer': {_CHARS}}}", SHOWN: "result > 0"},
        "write_description": {"folder": "'.'", "description": "{'kind': 'gpt'}"},
    },
    "tracing": {"trace": {"model": _GPT, "inputs": _SRC, SHOWN: "result['softmax'][0].shape"}},
}  # fmt: skip
