// The forward pass of the encoder–decoder, of decoder-only models and of BERT, step by step. Every intermediate is kept under the
// dotted name that Python's `model.intermediates()` gives it; the output of a module is kept under its name with ".out".
//
// A change is one of
//   { type: "head", path, head }                      the head's output A v is 0
//   { type: "uniform", path, head }                   the head looks at all keys it sees alike
//   { type: "key", path, head, key }                  the key is hidden from all queries of the head
//   { type: "score", path, head, query, key, value }  the score is replaced, unless a mask hides it
//   { type: "replace", name, position, vector }       the row of an intermediate (T, D) is replaced
//   { type: "off", name }                             an intermediate (T, D) is 0, such as the output of a sub-layer
//   { type: "scale" }, "mask", "positions", "residual"     the model has no division by √K, no causal mask, no
//                                                     positions in its input, no residual paths
// path: the name of an attention layer, such as "decoder.0.cross_attention"

class Forward {
  // before: an earlier run of the same model with the same changes, whose first `start` tokens are the same. A query
  // sees no later token, so these rows are not computed again: the matrices that go through the layers have the new rows
  // alone, and `keep` puts the earlier ones above them.
  constructor(model, changes, { encoded = {}, before = null, start = 0 } = {}) {
    Object.assign(this, { model, config: model.config, changes, before, start, values: { ...encoded } });
  }

  weight(name) {
    return this.model.weights[name];
  }
  without(type) {
    return this.changes.some((change) => change.type === type);
  }

  // Keep an intermediate and return it: a Matrix, with the rows that a change replaces.
  keep(name, matrix) {
    let kept = matrix;
    const own = () => (kept = kept === matrix ? matrix.map((value) => value) : kept); // it may have another name too
    for (const change of this.changes) {
      if (change.name !== name) continue;
      if (change.type === "off") own().data.fill(0);
      else if (change.type === "replace") {
        const row = change.position - this.start;
        if (row >= 0 && row < matrix.rows) own().row(row).set(change.vector);
      }
    }
    this.values[name] = this.whole(this.before?.[name], kept);
    return kept;
  }

  // The rows of an earlier run, and the new ones below. Columns that the earlier rows do not have are filled.
  whole(earlier, rows, columns = rows.columns, fill = 0) {
    if (!this.start) return rows;
    if (earlier.columns === columns) return extended(earlier, this.start, rows);
    const all = new Matrix(this.start + rows.rows, columns);
    if (fill) all.data.fill(fill);
    for (let t = 0; t < this.start; t++) all.row(t).set(earlier.row(t).subarray(0, columns));
    all.data.set(rows.data, this.start * columns);
    return all;
  }

  linear(path, name, x) {
    return linear(x, this.weight(`${path}.w${name}`), this.weight(`${path}.b${name}`));
  }

  norm(path, x) {
    const { y, normal, inverse } = this.model.normed(path, x);
    this.keep(`${path}.x_hat`, normal);
    this.keep(`${path}.${this.config.norm === "rms" ? "inv_rms" : "inv_std"}`, inverse);
    return this.keep(`${path}.out`, y);
  }

  // Post-norm: LayerNorm(x + sublayer(x)); norm_first: x + sublayer(LayerNorm(x))
  addNorm(path, x, sublayer) {
    const sum = (a, b) => (this.without("residual") ? b : add(a, b));
    const y = this.config.norm_first
      ? sum(x, sublayer(this.norm(`${path}.norm`, x)))
      : this.norm(`${path}.norm`, this.keep(`${path}.sum`, sum(x, sublayer(x))));
    return this.keep(`${path}.out`, y);
  }

  // x (T, D), memory (S, D) for cross-attention, else null; causal: whether a query sees no later key  ->  (T, D)
  attention(path, x, memory, causal) {
    const { values, before, config } = this;
    const [source, H, G] = [memory ?? x, this.model.heads, config.num_kv_heads ?? this.model.heads];
    this.keep(`${path}.x`, x);
    if (memory) values[`${path}.memory`] = memory;
    const heads = (name, from, count) => {
      const found = splitHeads(this.linear(path, `_${name}`, from), count);
      if (name === "v") return found;
      const scaled = this.normedHeads(`${path}.norm_${name}`, found);
      return config.frequencies ? scaled.map((head) => rotary(head, config.frequencies, this.start)) : scaled;
    };
    const q = heads("q", x, H);
    const grown = (name) => heads(name, source, G).map((head, g) => this.whole(before?.[`${path}.${name}`][g], head));
    const known = memory && this.start; // the memory is the same at every step
    const [k, v] = ["k", "v"].map((name) => (known ? before[`${path}.${name}`] : grown(name)));
    const group = (h) => Math.floor((h * G) / H); // heads of queries share a head of keys and values
    const changes = this.changes.filter((change) => change.path === path);
    const at = (h) => changes.filter(({ head }) => head === h);
    const is = (type, h) => at(h).some((change) => change.type === type);
    const scores = q.map((query, h) => this.scores(query, k[group(h)], causal && !this.without("mask"), at(h), h));
    const weights = scores.map((score, h) =>
      softmaxRows(is("uniform", h) ? score.map((value) => (value === -Infinity ? value : 0)) : score),
    ); // H of (T, S)
    const outputs = weights.map((weight, h) =>
      is("head", h) ? new Matrix(x.rows, v[group(h)].columns) : linear(weight, v[group(h)]),
    );
    const below = (name, matrices, fill) =>
      (values[`${path}.${name}`] = matrices.map((matrix, h) =>
        this.whole(before?.[`${path}.${name}`][h], matrix, matrix.columns, fill),
      ));
    below("q", q);
    below("scores", scores, -Infinity);
    below("weights", weights);
    Object.assign(values, { [`${path}.k`]: k, [`${path}.v`]: v });
    const concat = this.keep(`${path}.concat`, mergeHeads(outputs)); // (T, D)
    return this.keep(`${path}.out`, this.linear(path, "_o", concat));
  }

  // Each head's queries or keys with their RMSNorm, as in Qwen3; the heads themselves in other models.
  normedHeads(path, heads) {
    const { values, before, config } = this;
    const gamma = this.weight(`${path}.gamma`);
    if (!gamma) return heads;
    const found = heads.map((head) => layerNorm(head, gamma, null, config.layer_norm_eps, false));
    const keep = (name, part) =>
      (values[`${path}.${name}`] = found.map((each, h) => this.whole(before?.[`${path}.${name}`][h], each[part])));
    keep("x_hat", "normal");
    keep("inv_rms", "inverse");
    keep("out", "y");
    return found.map(({ y }) => y);
  }

  // S = q kᵀ / √K of one head, −∞ where hidden: q (T, K), k (S, K)  ->  (T, S)
  scores(q, k, causal, changes, head) {
    const [scale, { slopes, window }] = [this.without("scale") ? 1 : 1 / Math.sqrt(q.columns), this.config];
    const scores = tiedLinear(q, k).map((value) => value * scale);
    for (let t = 0; t < q.rows; t++) {
      const [row, query] = [scores.row(t), this.start + t];
      if (slopes) for (let s = 0; s < row.length; s++) row[s] -= slopes[head] * Math.abs(query - s);
      for (const change of changes) {
        if (change.key >= row.length) continue;
        if (change.type === "score" && change.query === query) row[change.key] = change.value;
        if (change.type === "key") row[change.key] = -Infinity;
      }
      if (causal) row.fill(-Infinity, query + 1);
      if (window != null && query > window) row.fill(-Infinity, 0, query - window);
    }
    return scores;
  }

  feedForward(path, x) {
    const { activation, gated } = this.config;
    const act = (matrix) => matrix.map((value) => ACTIVATIONS[activation][0](value));
    this.keep(`${path}.x`, x);
    let hidden;
    if (gated) {
      const opened = this.keep(`${path}.gate`, this.linear(path, "_gate", x));
      const value = this.keep(`${path}.value`, this.linear(path, "1", x));
      hidden = act(opened).map((factor, i) => factor * value.data[i]);
    } else hidden = act(this.keep(`${path}.before`, this.linear(path, "1", x)));
    return this.keep(`${path}.out`, this.linear(path, "2", this.keep(`${path}.hidden`, hidden)));
  }

  // An encoder block, or with `causal` that of a decoder-only model.
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

  // Rows of the table, the embeddings of the ids, times a factor, plus the segments' rows, plus the positions  ->  (T, D)
  input(path, ids, { embedding, position, scale, at, segment, segmentsOf }) {
    const rows = (name, which) => {
      const table = this.weight(`${name}.table`);
      const x = new Matrix(which.length - this.start, table.columns);
      for (let t = 0; t < x.rows; t++) x.row(t).set(table.row(which[this.start + t]));
      return this.keep(`${name}.out`, x);
    };
    let placed = rows(embedding, ids);
    const D = placed.columns;
    if (scale !== 1) placed = placed.map((value) => value * scale);
    if (segment) placed = add(placed, rows(segment, segmentsOf(ids)));
    if (position) {
      const none = this.without("positions");
      const row = (i) => this.start + Math.floor(i / D);
      placed = placed.map((value, i) => value + (none ? 0 : at(row(i), i % D)));
      placed = this.keep(`${position}.out`, placed);
    }
    return this.keep(path, placed);
  }

  output(x) {
    return this.keep("output.out", this.model.project(this.keep("output.x", x)));
  }
}

// The mean over the tokens of a text (Reimers & Gurevych 2019)
function textVector({ hidden }) {
  const mean = new Float64Array(hidden.columns);
  for (let t = 0; t < hidden.rows; t++) addScaled(mean, hidden.row(t), 1 / hidden.rows);
  return mean;
}

// How many blocks of a stack, from the first on, the changes leave as they are; null if one is elsewhere, or everywhere.
function untouched(changes, stack) {
  const blocks = changes.map(({ path, name }) => `${path ?? name}.`.match(`^${stack}[.](\\d+)[.]`));
  return blocks.every(Boolean) ? Math.min(...blocks.map(([, block]) => Number(block))) : null;
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
  normed(path, x) {
    const { layer_norm_eps: eps, norm } = this.config;
    return layerNorm(x, this.weights[`${path}.gamma`], this.weights[`${path}.beta`], eps, norm !== "rms");
  }
  // Scores of all tokens: x (T, D)  ->  (T, V)
  project(x) {
    const [tied, b] = [this.weights["output.table"], this.weights["output.b"]];
    if (!tied) return linear(x, this.weights["output.w"], b);
    const scores = tiedLinear(x, tied);
    for (let t = 0; b && t < scores.rows; t++) addScaled(scores.row(t), b.data, 1);
    return scores;
  }
  get speaks() {
    return true;
  }
  // The scores that an earlier state of the residual stream would give (logit lens): x (T, D)  ->  (T, V)
  lens(x) {
    return this.project(this.weights[`${this.finalNorm}.gamma`] ? this.normed(this.finalNorm, x).y : x);
  }
  // The blocks of a stack that are computed, and their input, of a run that may know `same`: the intermediates of the same
  // text without the changes
  blocks(run, stack, count, same, input) {
    const first = (same && untouched(run.changes, stack)) ?? 0;
    const all = Array.from({ length: count }, (_, i) => `${stack}.${i}`);
    if (!first) return { x: input(), paths: all };
    Object.assign(run.values, same);
    return { x: same[`${all[first - 1]}.out`], paths: all.slice(first) };
  }
  // How many rows of an earlier run { values, given, encoded, changes, weights } can be used again. The last row is
  // always new: there must be something to compute.
  known(before, encoded, given, changes) {
    if (!before || before.encoded !== encoded || before.weights !== this.weights) return 0;
    if (changes.some(({ type }) => type === "mask") || JSON.stringify(changes) !== JSON.stringify(before.changes))
      return 0;
    const differs = given.findIndex((id, t) => id !== before.given[t]);
    return Math.min(differs < 0 ? given.length : differs, given.length - 1);
  }
}

class Transformer extends Model {
  finalNorm = "decoder_norm";

  // The embedding and the positions of a side: √D · E + PE
  side(path) {
    const D = this.config.d_model;
    const at = (position, feature) => sinusoid(position, feature, D);
    return { embedding: `${path}.embedding`, position: `${path}.position`, scale: Math.sqrt(D), at };
  }

  // src: ids of the source (S)  ->  the intermediates of the encoder
  encode(src, changes = []) {
    const run = new Forward(this, changes);
    let x = run.input("src_input.out", src, this.side("src_input"));
    for (let i = 0; i < this.config.num_encoder_layers; i++) x = run.encoderBlock(`encoder.${i}`, x, false);
    run.keep("memory", this.config.norm_first ? run.norm("encoder_norm", x) : x);
    return run.values;
  }

  // encoded: from `encode`, given: ids of the target so far, from the start token on (T)  ->  all intermediates
  forward(encoded, given, changes = [], before = null, same = null) {
    const start = this.known(before, encoded, given, changes);
    const run = new Forward(this, changes, { encoded, before: before?.values, start });
    const input = () => run.input("tgt_input.out", given, this.side("tgt_input"));
    let { x, paths } = this.blocks(run, "decoder", this.config.num_decoder_layers, same, input);
    for (const path of paths) x = run.decoderBlock(path, x, encoded.memory);
    run.output(this.config.norm_first ? run.norm("decoder_norm", x) : x);
    return run.values;
  }
}

// A GPT or a Llama
class DecoderOnly extends Model {
  finalNorm = "norm";

  get side() {
    const { positions, d_model: D } = this.config;
    const table = this.weights["position.table"];
    const at = positions === "learned" ? (t, i) => table.at(t, i) : (t, i) => sinusoid(t, i, D);
    const position = ["learned", "sinusoidal"].includes(positions) ? "position" : null;
    return { embedding: "embedding", position, scale: positions === "sinusoidal" ? Math.sqrt(D) : 1, at };
  }

  // ids: of the text so far (T)  ->  all intermediates. There is no source, so nothing is encoded before.
  forward(_, ids, changes = [], before = null, same = null) {
    const start = this.known(before, undefined, ids, changes);
    const run = new Forward(this, changes, { before: before?.values, start });
    const input = () => run.input("input", ids, this.side);
    let { x, paths } = this.blocks(run, "blocks", this.config.num_layers, same, input);
    for (const path of paths) x = run.encoderBlock(path, x, true);
    run.output(run.norm("norm", x));
    return run.values;
  }
}

// A BERT: post-norm blocks in which every token sees all others, and a head that scores the words at every place or the
// classes of the text. A model without a head ends with the last block.
class Bert extends Model {
  finalNorm = null;

  get side() {
    const table = this.weights["position.table"];
    const segments = { segment: "segment", segmentsOf: (ids) => this.segments(ids) };
    return { embedding: "embedding", position: "position", scale: 1, at: (t, i) => table.at(t, i), ...segments };
  }
  get classifies() {
    return Boolean(this.weights["classifier.w"]);
  }
  get speaks() {
    return this.classifies || Boolean(this.weights["mlm_head.b"]);
  }
  // 0 up to the first [SEP], 1 after it: the second text of a pair
  segments(ids) {
    const first = ids.indexOf(this.separator);
    return ids.map((_, t) => (first >= 0 && t > first && this.config.type_vocab_size > 1 ? 1 : 0));
  }
  // x (T, D)  ->  LayerNorm(act(x W + b)), which the output projection reads, and act(…), x W + b themselves
  transformed(x) {
    const before = linear(x, this.weights["mlm_head.linear.w"], this.weights["mlm_head.linear.b"]);
    const hidden = before.map(ACTIVATIONS[this.config.activation][0]);
    return { before, hidden, ...this.normed("mlm_head.norm", hidden) };
  }
  // The vector of a text, which a classifier reads: tanh(x₀ W + b) of its first token, or the mean over all (T, D)  ->  (1, D)
  pooled(x) {
    const w = this.weights["pooler.linear.w"];
    if (!w) return { y: new Matrix(1, x.columns, textVector({ hidden: x })) };
    const before = linear(x.slice(0, 1), w, this.weights["pooler.linear.b"]);
    return { before, y: before.map(Math.tanh) };
  }
  lens(x) {
    return this.project((this.classifies ? this.pooled(x) : this.transformed(x)).y);
  }
  forward(_, ids, changes = [], __ = null, same = null) {
    const run = new Forward(this, changes);
    const input = () => run.norm("norm", run.input("input", ids, this.side));
    let { x, paths } = this.blocks(run, "blocks", this.config.num_layers, same, input);
    for (const path of paths) x = run.encoderBlock(path, x, false);
    run.keep("hidden", x);
    if (!this.speaks) return run.values;
    if (this.classifies) {
      const { before, y } = this.pooled(x);
      if (before) run.keep("pooler.linear.out", before);
      run.output(run.keep("pooler.out", y));
      return run.values;
    }
    const { before, hidden } = this.transformed(x);
    run.keep("mlm_head.linear.out", before);
    run.output(run.norm("mlm_head.norm", run.keep("mlm_head.hidden", hidden)));
    return run.values;
  }
}

// named: { name: Matrix }, the parameters
function modelFrom({ kind, config, excluded, separator }, named) {
  const tied = config.tie_embeddings;
  if (kind === "Bert") {
    if (named["classifier.w"])
      Object.assign(named, { "output.w": named["classifier.w"], "output.b": named["classifier.b"] });
    else if (named["mlm_head.b"])
      Object.assign(named, { "output.table": named["embedding.table"], "output.b": named["mlm_head.b"] });
    return Object.assign(new Bert(config, named), { excluded, separator });
  }
  if (kind !== "Transformer") {
    if (tied) named["output.table"] = named["embedding.table"];
    return Object.assign(new DecoderOnly(config, named), { excluded });
  }
  named["tgt_input.embedding.table"] ??= named["src_input.embedding.table"]; // one vocabulary
  if (tied) named["output.table"] = named["tgt_input.embedding.table"];
  return Object.assign(new Transformer(config, named), { excluded });
}
