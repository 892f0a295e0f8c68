// The forward pass of the encoder–decoder and of GPT, step by step. Every intermediate is kept under the dotted name
// that Python's `model.intermediates()` gives it; the output of a module is kept under its name with ".out".
//
// A change is one of
//   { type: "head", path, head }                      the head's output A v is 0
//   { type: "key", path, head, key }                  the key is hidden from all queries of the head
//   { type: "score", path, head, query, key, value }  the score is replaced, unless a mask hides it
//   { type: "replace", name, position, vector }       the row of an intermediate (T, D) is replaced
// path: the name of an attention layer, such as "decoder.0.cross_attention"

class Forward {
  constructor(model, changes, earlier = {}) {
    Object.assign(this, { model, changes, values: { ...earlier } });
  }

  weight(name) {
    return this.model.weights[name];
  }

  // Keep an intermediate and return it: a Matrix, with the rows that a change replaces.
  keep(name, matrix) {
    let kept = matrix;
    for (const { position, vector } of this.changes.filter(
      (change) => change.type === "replace" && change.name === name,
    )) {
      if (position >= matrix.rows) continue;
      if (kept === matrix) kept = matrix.map((value) => value); // it may also be kept under another name
      kept.row(position).set(vector);
    }
    this.values[name] = kept;
    return kept;
  }

  linear(path, name, x) {
    return linear(x, this.weight(`${path}.w${name}`), this.weight(`${path}.b${name}`));
  }

  norm(path, x) {
    const { y, normal, inverse } = layerNorm(
      x,
      this.weight(`${path}.gamma`),
      this.weight(`${path}.beta`),
      this.model.config.layer_norm_eps,
    );
    this.keep(`${path}.x_hat`, normal);
    this.keep(`${path}.inv_std`, inverse);
    return this.keep(`${path}.out`, y);
  }

  // Post-norm: LayerNorm(x + sublayer(x)); norm_first: x + sublayer(LayerNorm(x))
  addNorm(path, x, sublayer) {
    const { norm_first: first } = this.model.config;
    const y = first ? add(x, sublayer(this.norm(`${path}.norm`, x))) : this.norm(`${path}.norm`, add(x, sublayer(x)));
    return this.keep(`${path}.out`, y);
  }

  // x (T, D), memory (S, D) for cross-attention, else null; causal: whether a query sees no later key  ->  (T, D)
  attention(path, x, memory, causal) {
    const { values } = this;
    const source = memory ?? x;
    const H = this.model.heads;
    this.keep(`${path}.x`, x);
    if (memory) this.keep(`${path}.memory`, memory);
    const [q, k, v] = [
      ["_q", x],
      ["_k", source],
      ["_v", source],
    ].map(([name, from]) => splitHeads(this.linear(path, name, from), H));
    const changes = this.changes.filter((change) => change.path === path);
    const scores = q.map((query, h) =>
      this.scores(
        query,
        k[h],
        causal,
        changes.filter(({ head }) => head === h),
      ),
    );
    const weights = scores.map(softmaxRows); // H of (T, S)
    const off = (h) => changes.some(({ type, head }) => type === "head" && head === h);
    const heads = weights.map((weight, h) => (off(h) ? new Matrix(x.rows, v[h].columns) : linear(weight, v[h])));
    Object.assign(values, { [`${path}.q`]: q, [`${path}.k`]: k, [`${path}.v`]: v });
    Object.assign(values, { [`${path}.scores`]: scores, [`${path}.weights`]: weights });
    const concat = this.keep(`${path}.concat`, mergeHeads(heads)); // (T, D)
    return this.keep(`${path}.out`, this.linear(path, "_o", concat));
  }

  // S = q kᵀ / √K of one head, −∞ where hidden: q (T, K), k (S, K)  ->  (T, S)
  scores(q, k, causal, changes) {
    const scores = tiedLinear(q, k).map((value) => value / Math.sqrt(q.columns));
    for (const { type, query, key, value } of changes) {
      if (type === "score" && query < q.rows && key < k.rows) scores.row(query)[key] = value;
    }
    for (let t = 0; t < q.rows; t++) {
      for (const { type, key } of changes) if (type === "key" && key < k.rows) scores.row(t)[key] = -Infinity;
      if (causal) scores.row(t).fill(-Infinity, t + 1);
    }
    return scores;
  }

  feedForward(path, x) {
    this.keep(`${path}.x`, x);
    const before = this.keep(`${path}.before`, this.linear(path, "1", x));
    const hidden = this.keep(`${path}.hidden`, before.map(ACTIVATIONS[this.model.config.activation]));
    return this.keep(`${path}.out`, this.linear(path, "2", hidden));
  }

  // An encoder block, or with `causal` that of a GPT.
  encoderBlock(path, x, causal) {
    const a = this.addNorm(`${path}.add_norm1`, x, (y) => this.attention(`${path}.attention`, y, null, causal));
    return this.keep(
      `${path}.out`,
      this.addNorm(`${path}.add_norm2`, a, (y) => this.feedForward(`${path}.feed_forward`, y)),
    );
  }

  decoderBlock(path, x, memory) {
    const a = this.addNorm(`${path}.add_norm1`, x, (y) => this.attention(`${path}.self_attention`, y, null, true));
    const b = this.addNorm(`${path}.add_norm2`, a, (y) => this.attention(`${path}.cross_attention`, y, memory, false));
    return this.keep(
      `${path}.out`,
      this.addNorm(`${path}.add_norm3`, b, (y) => this.feedForward(`${path}.feed_forward`, y)),
    );
  }

  // Rows of the table, the embeddings of the ids  ->  (T, D)
  embedding(path, ids) {
    const table = this.weight(`${path}.table`);
    const x = new Matrix(ids.length, table.columns);
    ids.forEach((id, i) => x.row(i).set(table.row(id)));
    return this.keep(`${path}.out`, x);
  }

  output(x) {
    return this.keep("output.out", this.model.project(this.keep("output.x", x)));
  }
}

class Model {
  constructor(config, weights) {
    Object.assign(this, { config, weights, heads: config.num_heads, excluded: [] });
  }
  // The scores (V) with −∞ for the tokens that are never written, such as <unk>
  writable(logits) {
    const scores = logits.slice();
    for (const id of this.excluded) scores[id] = -Infinity;
    return scores;
  }
  // Scores of all tokens: x (T, D)  ->  (T, V)
  project(x) {
    const tied = this.weights["output.table"];
    return tied ? tiedLinear(x, tied) : linear(x, this.weights["output.w"], this.weights["output.b"]);
  }
  // The scores that an earlier state of the residual stream would give (logit lens): x (T, D)  ->  (T, V)
  lens(x) {
    const [gamma, beta] = [this.weights[`${this.finalNorm}.gamma`], this.weights[`${this.finalNorm}.beta`]];
    return this.project(gamma ? layerNorm(x, gamma, beta, this.config.layer_norm_eps).y : x);
  }
}

class Transformer extends Model {
  finalNorm = "decoder_norm";

  // src: ids of the source (S)  ->  the intermediates of the encoder
  encode(src, changes = []) {
    const run = new Forward(this, changes);
    let x = this.input(run, "src_input", src);
    for (let i = 0; i < this.config.num_encoder_layers; i++) x = run.encoderBlock(`encoder.${i}`, x, false);
    run.keep("memory", this.config.norm_first ? run.norm("encoder_norm", x) : x);
    return run.values;
  }

  // encoded: from `encode`, given: ids of the target so far, from the start token on (T)  ->  all intermediates
  forward(encoded, given, changes = []) {
    const run = new Forward(this, changes, encoded);
    let x = this.input(run, "tgt_input", given);
    for (let i = 0; i < this.config.num_decoder_layers; i++) x = run.decoderBlock(`decoder.${i}`, x, encoded.memory);
    run.output(this.config.norm_first ? run.norm("decoder_norm", x) : x);
    return run.values;
  }

  // √D · embedding + positional encoding
  input(run, path, ids) {
    const D = this.config.d_model;
    const x = run
      .embedding(`${path}.embedding`, ids)
      .map((value, i) => value * Math.sqrt(D) + sinusoid(Math.floor(i / D), i % D, D));
    return run.keep(`${path}.out`, run.keep(`${path}.position.out`, x));
  }
}

class GPT extends Model {
  finalNorm = "norm";

  constructor(config, weights) {
    super({ ...config, norm_first: true }, weights);
  }

  // ids: of the text so far (T)  ->  all intermediates. There is no source, so nothing is encoded before.
  forward(_, ids, changes = []) {
    const run = new Forward(this, changes);
    const table = this.weights["position.table"];
    let x = run.keep(
      "position.out",
      run.embedding("embedding", ids).map((value, i) => value + table.data[i]),
    );
    for (let i = 0; i < this.config.num_layers; i++) x = run.encoderBlock(`blocks.${i}`, x, true);
    run.output(run.norm("norm", x));
    return run.values;
  }
}

function modelFrom({ kind, config, format, shapes, weights, excluded }) {
  const numbers = numbersOf(weights, format);
  const named = {};
  let start = 0;
  for (const [name, rows, columns] of shapes) {
    named[name] = new Matrix(rows, columns, numbers.subarray(start, start + rows * columns));
    start += rows * columns;
  }
  const tied = config.tie_embeddings;
  if (kind === "GPT") {
    if (tied) named["output.table"] = named["embedding.table"];
    return Object.assign(new GPT(config, named), { excluded });
  }
  named["tgt_input.embedding.table"] ??= named["src_input.embedding.table"]; // one vocabulary
  if (tied) named["output.table"] = named["tgt_input.embedding.table"];
  return Object.assign(new Transformer(config, named), { excluded });
}
