// The backward pass, written by hand: the forward of model.js read from the bottom up. ∂L/∂(an intermediate) is kept
// under the name of the intermediate, ∂L/∂(a weight) under the name of the weight.
//
// What a change replaces is a constant: no gradient goes to what it was before.

class Backward {
  // whole: whether the gradients of the weights are computed too, which take as much memory as the model
  constructor(model, values, changes, whole) {
    Object.assign(this, { model, config: model.config, values, changes, whole, gradients: {}, weights: {} });
  }

  // Keep the gradient of an intermediate and return that of its value before the changes.
  keep(name, gradient) {
    this.gradients[name] = gradient;
    let passed = gradient;
    for (const change of this.changes) {
      if (change.name !== name) continue;
      if (passed === gradient) passed = gradient.map((value) => value);
      if (change.type === "off") passed.data.fill(0);
      else if (change.position < passed.rows) passed.row(change.position).fill(0);
    }
    return passed;
  }

  without(type) {
    return this.changes.some((change) => change.type === type);
  }

  // A weight that is used more than once, such as a tied table, adds up its gradients.
  collect(name, made) {
    const all = this.model.weights;
    if (!all[name] || !this.whole) return;
    const gradient = made();
    const owner = Object.keys(all).find((other) => all[other] === all[name]);
    this.weights[owner] = this.weights[owner] ? add(this.weights[owner], gradient) : gradient;
  }

  linear(path, name, dy, x) {
    this.collect(`${path}.w${name}`, () => linear(x.transposed, dy));
    this.collect(`${path}.b${name}`, () => rowSum(dy));
    return tiedLinear(dy, this.model.weights[`${path}.w${name}`]);
  }

  norm(path, dy) {
    const rms = this.config.norm === "rms";
    const [normal, inverse] = ["x_hat", rms ? "inv_rms" : "inv_std"].map((name) => this.values[`${path}.${name}`]);
    dy = this.keep(`${path}.out`, dy);
    const { dx, dgamma, dbeta } = layerNormBackward(dy, normal, inverse, this.model.weights[`${path}.gamma`], !rms);
    this.collect(`${path}.gamma`, () => dgamma);
    this.collect(`${path}.beta`, () => dbeta);
    return dx;
  }

  // A sum hands its gradient to both terms.
  addNorm(path, dy, sublayer) {
    const sum = (a, b) => (this.without("residual") ? b : add(a, b));
    dy = this.keep(`${path}.out`, dy);
    if (this.config.norm_first) return sum(dy, this.norm(`${path}.norm`, sublayer(dy)));
    const dsum = this.keep(`${path}.sum`, this.norm(`${path}.norm`, dy));
    return sum(dsum, sublayer(dsum));
  }

  // dy (T, D)  ->  dx (T, D), which includes that of keys and values in self-attention; dmemory (S, D) of cross-attention
  attention(path, dy) {
    const [x, memory, q, k, v, weights, concat] = ["x", "memory", "q", "k", "v", "weights", "concat"].map(
      (name) => this.values[`${path}.${name}`],
    );
    const [source, H, G] = [memory ?? x, q.length, k.length];
    const dconcat = this.keep(`${path}.concat`, this.linear(path, "_o", this.keep(`${path}.out`, dy), concat));
    const changes = this.changes.filter((change) => change.path === path);
    const is = (type, h) => changes.some((change) => change.type === type && change.head === h);
    const scale = this.without("scale") ? 1 : 1 / Math.sqrt(q[0].columns);
    const dz = splitHeads(dconcat, H).map((head, h) => (is("head", h) ? new Matrix(head.rows, head.columns) : head));
    const group = (h) => Math.floor((h * G) / H);
    const dweights = dz.map((head, h) => tiedLinear(head, v[group(h)])); // ∂L/∂A = g vᵀ  (T, S)
    const dscores = dweights.map((dweight, h) =>
      is("uniform", h) ? new Matrix(dweight.rows, dweight.columns) : softmaxBackwardRows(dweight, weights[h]),
    );
    const products = dscores.map((dscore, h) => this.computed(dscore, changes, h)); // ∂L/∂(q kᵀ / √K)
    const dq = products.map((dproduct, h) => linear(dproduct, k[group(h)]).map((value) => value * scale));
    const shared = (found) =>
      found.reduce((sums, d, h) => ((sums[group(h)] = sums[group(h)] ? add(sums[group(h)], d) : d), sums), []);
    const dk = shared(products.map((dproduct, h) => linear(dproduct.transposed, q[h]).map((value) => value * scale)));
    const dv = shared(weights.map((weight, h) => linear(weight.transposed, dz[h])));
    const kept = { weights: dweights, scores: dscores, q: dq, k: dk, v: dv, heads: dz };
    for (const [name, found] of Object.entries(kept)) this.gradients[`${path}.${name}`] = found;
    const projected = (name, heads) => {
      const turned = this.config.frequencies ? heads.map((d) => rotary(d, this.config.frequencies, 0, -1)) : heads;
      return mergeHeads(this.normedHeads(`${path}.norm_${name}`, turned));
    };
    const dx = this.linear(path, "_q", projected("q", dq), x);
    const dsource = add(
      this.linear(path, "_k", projected("k", dk), source),
      this.linear(path, "_v", mergeHeads(dv), source),
    );
    if (memory) return { dx: this.keep(`${path}.x`, dx), dmemory: dsource };
    return { dx: this.keep(`${path}.x`, add(dx, dsource)) };
  }

  // Through the RMSNorm of each head, which share one γ.
  normedHeads(path, heads) {
    const gamma = this.model.weights[`${path}.gamma`];
    if (!gamma) return heads;
    return heads.map((dy, h) => {
      const [normal, inverse] = ["x_hat", "inv_rms"].map((name) => this.values[`${path}.${name}`][h]);
      const { dx, dgamma } = layerNormBackward(dy, normal, inverse, gamma, false);
      this.collect(`${path}.gamma`, () => dgamma);
      return dx;
    });
  }

  // The gradient of the scores that are computed: a score that a change replaced is a constant.
  computed(dscores, changes, head) {
    const edited = changes.filter(({ type, head: at }) => type === "score" && at === head);
    if (!edited.length) return dscores;
    const passed = dscores.map((value) => value);
    for (const { query, key } of edited) if (query < passed.rows && key < passed.columns) passed.row(query)[key] = 0;
    return passed;
  }

  feedForward(path, dy) {
    const { activation, gated } = this.config;
    const [act, slope] = ACTIVATIONS[activation];
    const at = (name) => this.values[`${path}.${name}`];
    const dhidden = this.keep(`${path}.hidden`, this.linear(path, "2", this.keep(`${path}.out`, dy), at("hidden")));
    const through = (name, factor) =>
      this.keep(
        `${path}.${name}`,
        dhidden.map((value, i) => value * factor(at(name).data[i], i)),
      );
    if (!gated) return this.keep(`${path}.x`, this.linear(path, "1", through("before", slope), at("x")));
    const dgate = through("gate", (x, i) => slope(x) * at("value").data[i]);
    const dvalue = through("value", (_, i) => act(at("gate").data[i]));
    const dx = add(this.linear(path, "_gate", dgate, at("x")), this.linear(path, "1", dvalue, at("x")));
    return this.keep(`${path}.x`, dx);
  }

  encoderBlock(path, dy) {
    dy = this.keep(`${path}.out`, dy);
    const da = this.addNorm(`${path}.add_norm2`, dy, (d) => this.feedForward(`${path}.feed_forward`, d));
    return this.addNorm(`${path}.add_norm1`, da, (d) => this.attention(`${path}.attention`, d).dx);
  }

  decoderBlock(path, dy) {
    let dmemory;
    dy = this.keep(`${path}.out`, dy);
    const db = this.addNorm(`${path}.add_norm3`, dy, (d) => this.feedForward(`${path}.feed_forward`, d));
    const da = this.addNorm(`${path}.add_norm2`, db, (d) => {
      const found = this.attention(`${path}.cross_attention`, d);
      dmemory = found.dmemory;
      return found.dx;
    });
    return {
      dx: this.addNorm(`${path}.add_norm1`, da, (d) => this.attention(`${path}.self_attention`, d).dx),
      dmemory,
    };
  }

  input(path, ids, dx, { embedding, position, scale, segment, segmentsOf }) {
    dx = this.keep(path, dx);
    if (position) {
      dx = this.keep(`${position}.out`, dx);
      if (!this.without("positions")) this.collect(`${position}.table`, () => this.scattered(position, dx));
    }
    if (segment) this.table(segment, segmentsOf(ids), dx); // a sum hands its gradient to all its terms
    this.table(embedding, ids, scale === 1 ? dx : dx.map((value) => value * scale));
  }

  table(name, ids, dx) {
    dx = this.keep(`${name}.out`, dx);
    this.collect(`${name}.table`, () => this.scattered(name, dx, ids));
  }

  // The gradient of a table of which row ids[t], or t, was used at position t
  scattered(name, dx, ids) {
    const { rows, columns } = this.model.weights[`${name}.table`];
    const dtable = new Matrix(rows, columns);
    for (let t = 0; t < dx.rows; t++) addScaled(dtable.row(ids ? ids[t] : t), dx.row(t), 1); // one that occurs twice adds up
    return dtable;
  }

  output(dlogits) {
    const x = this.values["output.x"];
    dlogits = this.keep("output.out", dlogits);
    const tied = this.model.weights["output.table"];
    if (!tied) return this.keep("output.x", this.linear("output", "", dlogits, x));
    this.collect("output.table", () => linear(dlogits.transposed, x)); // (V, D)
    this.collect("output.b", () => rowSum(dlogits));
    return this.keep("output.x", linear(dlogits, tied));
  }

  // A classifier's vector of the text, from one row or from the mean of all
  pooled(dy) {
    const { hidden, "pooler.out": y } = this.values;
    const dx = new Matrix(hidden.rows, hidden.columns);
    dy = this.keep("pooler.out", dy);
    if (this.values["pooler.linear.out"]) {
      const dbefore = this.keep("pooler.linear.out", dy.map((value, i) => value * (1 - y.data[i] ** 2)));
      dx.row(0).set(this.linear("pooler.linear", "", dbefore, hidden.slice(0, 1)).data);
    } else for (let t = 0; t < dx.rows; t++) addScaled(dx.row(t), dy.data, 1 / dx.rows);
    return this.keep("hidden", dx);
  }

  // BERT's LayerNorm(act(x W + b)) before its output projection
  transformed(dy) {
    const dhidden = this.keep("mlm_head.hidden", this.norm("mlm_head.norm", dy));
    const [before, slope] = [this.values["mlm_head.linear.out"], ACTIVATIONS[this.config.activation][1]];
    const dbefore = dhidden.map((value, i) => value * slope(before.data[i]));
    return this.keep(
      "hidden",
      this.linear("mlm_head.linear", "", this.keep("mlm_head.linear.out", dbefore), this.values.hidden),
    );
  }
}

// From ∂L/∂logits (T, V) of a forward to { gradients of intermediates, weights: gradients of weights }.
function backward(model, { values, given, src, changes }, dlogits, whole = true) {
  const run = new Backward(model, values, changes, whole);
  const c = model.config;
  let dx = run.output(dlogits);
  if (!(model instanceof Transformer)) {
    const [first, last] = model instanceof Bert ? ["norm", null] : [null, "norm"];
    dx = last ? run.norm(last, dx) : model.classifies ? run.pooled(dx) : run.transformed(dx);
    for (let i = c.num_layers - 1; i >= 0; i--) dx = run.encoderBlock(`blocks.${i}`, dx);
    run.input("input", given, first ? run.norm(first, dx) : dx, model.side);
    return run;
  }
  if (c.norm_first) dx = run.norm("decoder_norm", dx);
  let dmemory = new Matrix(values.memory.rows, values.memory.columns);
  for (let i = c.num_decoder_layers - 1; i >= 0; i--) {
    const found = run.decoderBlock(`decoder.${i}`, dx);
    dx = found.dx;
    dmemory = add(dmemory, found.dmemory); // every block reads the memory
  }
  run.input("tgt_input.out", given, dx, model.side("tgt_input"));
  dx = run.keep("memory", dmemory);
  if (c.norm_first) dx = run.norm("encoder_norm", dx);
  for (let i = c.num_encoder_layers - 1; i >= 0; i--) dx = run.encoderBlock(`encoder.${i}`, dx);
  run.input("src_input.out", src, dx, model.side("src_input"));
  return run;
}

// The cross-entropy of target words, mean over those that count, and its gradient. targets: an id or null for each row
function crossEntropy(logits, targets) {
  const count = targets.filter((id) => id !== null).length;
  const dlogits = new Matrix(logits.rows, logits.columns);
  let loss = 0;
  targets.forEach((id, t) => {
    if (id === null || t >= logits.rows) return;
    const p = softmax(logits.row(t));
    loss -= Math.log(p[id]) / count;
    p[id] -= 1; // dlogits = (p − one-hot) / count
    addScaled(dlogits.row(t), p, 1 / count);
  });
  return { loss, dlogits };
}

// One step of stochastic gradient descent: new weights w − η ∂L/∂w. Names that share a matrix share the new one.
function descended(model, gradients, rate) {
  const made = new Map();
  for (const [name, gradient] of Object.entries(gradients)) {
    const weight = model.weights[name];
    const moved = Float64Array.from(weight.data, (value, i) => value - rate * gradient.data[i]);
    made.set(weight, new Matrix(weight.rows, weight.columns, moved));
  }
  return Object.fromEntries(Object.entries(model.weights).map(([name, weight]) => [name, made.get(weight) ?? weight]));
}
