// Who wrote a token: the terms of its logit ("direct logit attribution", Elhage et al. 2021). Every sub-layer adds its
// output to the residual path, so the last state is a sum, and d, the vector of the token in the output projection, reads
// each term. The numbers by which the norms divide are held fixed, as they are for this text: d goes back through the
// norms as through linear maps.

// The terms of the logit of a token at row t of a run: { logit, embedding, heads, feedForwards, biases, parts }
//   parts: of each attention layer, the first one first { name, heads: [number, …], feedForward: number or null }
function contributions(model, values, id, t) {
  const { weights, config, finalNorm } = model;
  const [tied, b] = [weights["output.table"], weights["output.b"]];
  let d = tied ? tied.row(id) : weights["output.w"].transposed.row(id);
  let biases = b ? b.data[id] : 0;
  const before = (norm) => {
    const [gamma, beta] = ["gamma", "beta"].map((name) => weights[`${norm}.${name}`]?.data);
    if (beta) biases += dot(beta, d);
    const rms = config.norm === "rms";
    const read = Float64Array.from(d, (x, i) => x * gamma[i]);
    const mean = rms ? 0 : read.reduce((a, b) => a + b, 0) / read.length;
    const inverse = values[`${norm}.${rms ? "inv_rms" : "inv_std"}`].data[t];
    d = read.map((x) => (x - mean) * inverse);
  };
  const adds = (name) => dot(values[name].row(t), d);
  if (weights[`${finalNorm}.gamma`]) before(finalNorm);
  const kinds = KINDS.filter(({ rows }) => rows === "target");
  const [{ layers, stack }] = kinds;
  const parts = [];
  for (let i = layers - 1; i >= 0; i--) {
    const block = `${stack}.${i}`;
    if (!config.norm_first) before(`${block}.add_norm${kinds.length + 1}.norm`);
    let feedForward = adds(`${block}.feed_forward.out`);
    for (let n = kinds.length; n > 0; n--) {
      if (!config.norm_first) before(`${block}.add_norm${n}.norm`);
      const { part, title } = kinds[n - 1];
      const [w, row] = [weights[`${block}.${part}.w_o`], values[`${block}.${part}.concat`].row(t)];
      const out = `${block}.${part}.out`;
      const isOff = !values[out].row(t).some(Boolean); // by a change: the heads then add nothing
      const each = Array.from(row, (x, k) => (isOff ? 0 : x * dot(w.row(k), d)));
      const K = row.length / config.num_heads;
      const heads = Array.from({ length: config.num_heads }, (_, h) => each.slice(h * K, (h + 1) * K).reduce((a, b) => a + b, 0));
      biases += adds(out) - heads.reduce((a, b) => a + b, 0);
      parts.unshift({ name: kinds.length > 1 ? `${title.replace(/^decoder /, "")} ${i + 1}` : `layer ${i + 1}`, heads, feedForward });
      feedForward = null; // it follows the last attention of its block
    }
  }
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  return {
    logit: values["output.out"].row(t)[id],
    embedding: adds(translates ? "tgt_input.out" : "input"),
    heads: sum(parts.flatMap(({ heads }) => heads)),
    feedForwards: sum(parts.map(({ feedForward }) => feedForward ?? 0)),
    biases,
    parts,
  };
}
