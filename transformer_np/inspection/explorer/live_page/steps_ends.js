// The steps below the first layer, and those above the last.

function inputSteps(side) {
  const prefix = translates ? `${side === "source" ? "src" : "tgt"}_input.` : "";
  const embedding = `${prefix}embedding`;
  const ids = () => (side === "source" ? source() : result.given);
  const e = values("E", whole(`${embedding}.out`));
  const found = [
    {
      id: "embedding",
      label: "Embedding",
      title: "Every token has a row in the table",
      formula: "x = E[id]",
      sign: [],
      rows: side,
      factors: [],
      result: e,
      cell: (i, j, all) => `Row ${ids()[i]} of the table, feature ${j + 1}: ${rounded(e.get(all).at(i, j))}`,
    },
  ];
  const position = value(`${prefix}position.out`);
  if (!position) return found;
  const segment = fills && values("G", whole("segment.out"));
  if (fills)
    found.push({
      id: "segment",
      label: "Segment",
      title: "Which text of a pair: the first [SEP] ends the first one",
      formula: "g = G[0] up to the first [SEP], G[1] after it",
      sign: [],
      rows: side,
      factors: [],
      result: segment,
      cell: (i, j, all) => `${cellName("G", i, j)} = ${rounded(segment.get(all).at(i, j))}`,
    });
  const x = values("X", whole(`${prefix}position.out`));
  const scale = translates || data.config.positions === "sinusoidal" ? Math.sqrt(data.config.d_model) : 1;
  const pe = {
    symbol: "PE",
    get: (all) =>
      new Matrix(
        position.rows,
        position.columns,
        x.get(all).data.map((sum, i) => sum - scale * e.get(all).data[i] - (segment ? segment.get(all).data[i] : 0)),
      ),
    gradient: ({ gradients }) => gradients[`${prefix}position.out`],
  };
  found.push({
    id: "position",
    label: "+ Position",
    title: "The word, and where it stands",
    formula: `x = ${scale === 1 ? "" : "√D · "}E[id] + ${segment ? "G[segment] + " : ""}P[position]`,
    sign: [scale === 1 ? "+" : `· ${rounded(scale)} +`, ...(segment ? ["+"] : []), "="],
    rows: side,
    factors: [e, ...(segment ? [segment] : []), pe],
    result: x,
    cell: (i, j, all) =>
      `${cellName("X", i, j)} = ${scale === 1 ? "" : `${rounded(scale)} · `}${rounded(e.get(all).at(i, j))} + ${segment ? `${rounded(segment.get(all).at(i, j))} + ` : ""}${rounded(pe.get(all).at(i, j))} = ${rounded(x.get(all).at(i, j))}`,
  });
  if (fills) found.push(normStep("norm0", "norm", side, x));
  return found;
}

// The layers of a BERT between its last block and the scores
function headSteps() {
  const name = ACTIVATION_NAMES[data.config.activation] ?? "GELU";
  const [x, u, h] = [
    values("X", whole("hidden")),
    values("U", whole("mlm_head.linear.out")),
    values("H", whole("mlm_head.hidden")),
  ];
  const b = model.weights["mlm_head.linear.b"];
  const first = product("head", "W", "The head that guesses: a linear map", "U = X W + b", {
    rows: "target",
    left: x,
    right: weight("W", "mlm_head.linear.w"),
    result: u,
    bias: () => b,
  });
  const acted = {
    id: "head-act",
    label: name,
    title: "The activation of the head",
    formula: `H = ${name}(U), number by number`,
    sign: [`→ ${name} →`],
    rows: "target",
    factors: [u],
    result: h,
    cell: (i, j, all) =>
      `${cellName("H", i, j)} = ${name}(${rounded(u.get(all).at(i, j))}) = ${rounded(h.get(all).at(i, j))}`,
  };
  return [first, acted, normStep("norm", "mlm_head.norm", "target", h)];
}

// The layer of a classifier between the last block and the scores
function poolSteps() {
  const [x, p] = [values("X", whole("hidden")), values("P", whole("pooler.out"))];
  const shared = { label: "Pool", title: "One vector for the whole text", rows: "target", names: ["text"] };
  if (data.config.pooling === "mean") {
    const mean = (i, j, all) => `${cellName("P", i, j)} = the mean of column ${j + 1} of X = ${rounded(p.get(all).at(i, j))}`;
    return [{ ...shared, id: "pool", formula: "p = mean of the rows of X", sign: ["→ mean →"], factors: [x], result: p, cell: mean }];
  }
  const [u, b] = [values("U", whole("pooler.linear.out")), model.weights["pooler.linear.b"]];
  const first = { symbol: "X₁", get: (all) => x.get(all)?.slice(0, 1), gradient: (found) => x.gradient(found)?.slice(0, 1) };
  const cell = (i, j, all) =>
    `${cellName("P", i, j)} = tanh(${rounded(u.get(all).at(i, j))}) = ${rounded(p.get(all).at(i, j))}`;
  return [
    {
      ...product("pool", "Pool", "The first row alone goes on: it has seen all others", "U = X₁ W + b", {
        rows: "target",
        left: first,
        right: weight("W", "pooler.linear.w"),
        result: u,
        bias: () => b,
      }),
      names: shared.names,
    },
    { ...shared, id: "pool-act", label: "tanh", formula: "P = tanh(U), number by number", sign: ["→ tanh →"], factors: [u], result: p, cell },
  ];
}

const CANDIDATES = 10; // tokens that the last steps show

function outputSteps() {
  const t = scoredRow(place("target"));
  const ids = ranked(model.writable(value("output.out").row(t)), CANDIDATES).map(({ id }) => id);
  const next = CLASSES ? null : following()[t]; // of the text: it is shown too
  if (next !== null && !ids.includes(next)) ids[ids.length - 1] = next;
  const names = ids.map(outcomeOf);
  const whose = CLASSES ? { names: ["text"] } : {};
  const some = (matrix) => rowsOf(matrix.transposed, ids).transposed;
  const tied = model.weights["output.table"];
  const w = tied
    ? weight("Eᵀ", "output.table", (matrix) => rowsOf(matrix, ids).transposed)
    : weight("W", "output.w", some);
  const b = model.weights["output.b"];
  const x = values("X", whole("output.x"));
  const logits = values("U", whole("output.out"), some);
  const first = product(
    "logits",
    "Logits",
    CLASSES ? "A score for every class" : "A score for every token; here the best of the chosen row, and the text's own",
    `U = X ${w.symbol}${b ? " + b" : ""}`,
    {
      rows: "target",
      columns: names,
      left: x,
      right: w,
      result: logits,
      bias: b && (() => some(b)),
      axes: ["position", CLASSES ? "class" : UNIT],
    },
  );
  const p = {
    symbol: "P",
    get: (all) =>
      some(new Matrix(all["output.out"].rows, all["output.out"].columns, softmaxRows(all["output.out"]).data)),
    gradient: () => undefined,
  };
  const cell = (i, j, all) => {
    const row = all["output.out"].row(i);
    const most = Math.max(...row);
    const total = row.reduce((sum, s) => sum + Math.exp(s - most), 0);
    return `${cellName("P", i, j)} = e^${rounded(row[ids[j]])} / Σ e^U over ${row.length} ${CLASSES ? "classes" : "tokens"} = ${rounded(Math.exp(row[ids[j]] - most))} / ${rounded(total)} (both divided by e^${rounded(most)}) = ${percent(p.get(all).at(i, j))}`;
  };
  const second = {
    id: "probabilities",
    label: "Softmax",
    title: CLASSES ? "The class of the text" : fills ? `The ${UNIT} at this position` : `The next ${UNIT}`,
    formula: "p = softmax(u)",
    ...whose,
    sign: ["→ softmax →"],
    rows: "target",
    columns: names,
    axes: ["position", CLASSES ? "class" : UNIT],
    factors: [logits],
    result: p,
    cell,
    weights: true,
  };
  const own = { sign: [], factors: [], rows: "own", glance: false };
  const token = CLASSES ? "class" : UNIT;
  const choice = {
    id: "choice",
    label: "Choice",
    title: `How the next ${UNIT} is chosen`,
    formula: "p = softmax(u / temperature), of which top-k and top-p keep the most likely",
    ...own,
    names: ["temperature 1", "as chosen"],
    columns: names,
    axes: ["p", token],
    factors: [],
    weights: true,
    result: { symbol: "P", get: (all) => chances(all["output.out"].row(t), ids), gradient: () => undefined },
    cell: (i, j, all) => `p of ${quoted(names[j])} = ${percent(chances(all["output.out"].row(t), ids).at(i, j))}${i ? `, ${howText()}` : ""}`,
  };
  const loss = {
    ...own,
    id: "loss",
    label: "Loss",
    title: "The loss of every row",
    formula: CLASSES ? "L = −ln p(target)" : "L = the mean of −ln p(target)",
    rows: "target",
    ...whose,
    columns: ["p(target)", "−ln p"],
    axes: ["position", ""],
    hidden: (i) => targets()[i] === null,
    result: { symbol: "L", get: lossRows, gradient: () => undefined },
    cell: (i, j, all) => {
      const id = targets()[i];
      if (id === null) return "no target: the text does not say what comes next";
      const [p, l] = lossRows(all).row(i);
      return `−ln p(${quoted(outcomeOf(id))}) = −ln ${p.toPrecision(3)} = ${precise3(l)}`;
    },
    panel: "training",
  };
  const moved = {
    ...own,
    id: "moved",
    label: "SGD",
    title: "One step of SGD: the weights that it moves most",
    formula: "w ← w − η ∂L/∂w",
    get names() {
      return movedMost().map(({ name }) => name);
    },
    columns: ["next step, % of ‖w‖", "moved so far, %"],
    axes: ["weights", ""],
    result: { symbol: "w", get: () => movedMatrix(movedMost()), gradient: () => undefined },
    cell: (i) => `one step changes ${movedMost()[i].name} by ‖η ∂L/∂w‖ = ${precise(movedMost()[i].step)}; its length is ${rounded(movedMost()[i].size)}`,
    panel: "training",
  };
  return [{ ...first, ...whose }, second, ...(CLASSES || fills ? [] : [choice]), loss, moved, lensStep(ids, names)];
}

// p of some tokens: as the scores give it, and as one of them is chosen
function chances(scores, ids) {
  const plain = softmax(model.writable(scores));
  const best = choose(model.writable(scores), { temperature: 0 });
  const greedy = plain.map((_, id) => (id === best ? 1 : 0));
  const drawn = state.how.temperature ? distribution(model.writable(scores), state.how) : greedy;
  return new Matrix(2, ids.length, Float64Array.from([plain, drawn].flatMap((p) => ids.map((id) => p[id]))));
}

function howText() {
  const { temperature, topK, topP } = state.how;
  if (!temperature) return "the most likely one is taken";
  return `temperature ${temperature}${topK ? `, top-k ${topK}` : ""}${topP < 1 ? `, top-p ${topP}` : ""}`;
}

// p of the target and −ln p of each row; 0 where there is no target
function lossRows(all) {
  const wanted = targets();
  const found = new Matrix(wanted.length, 2);
  wanted.forEach((id, i) => {
    if (id === null) return;
    const p = softmax(all["output.out"].row(i))[id];
    found.row(i).set([p, -Math.log(p)]);
  });
  return found;
}

// The logit lens (nostalgebraist 2020): what the output projection reads in every earlier state of the stream
function lensStep(ids, names) {
  const states = () => stages("target").filter(({ name, added }) => !added && name !== `${model.finalNorm}.out`).slice(1);
  const t = place("target");
  const at = (all, name) => softmax(model.writable(model.lens(CLASSES ? all[name] : all[name].slice(t, t + 1)).data));
  const get = (all) => {
    const found = states();
    const p = new Matrix(found.length, ids.length);
    found.forEach(({ name }, i) => {
      const row = at(all, name);
      p.row(i).set(ids.map((id) => row[id]));
    });
    return p;
  };
  return {
    id: "lens",
    label: "Lens",
    title: `The logit lens: the ${CLASSES ? "class" : `next ${UNIT}`}, state by state`,
    formula: `p = softmax(${CLASSES ? "pool" : "norm"}(x) W) of every earlier state x`,
    sign: [],
    factors: [],
    rows: "own",
    glance: false,
    weights: true,
    names: states().map(({ label, from }) => from ?? label),
    columns: names,
    axes: ["state", CLASSES ? "class" : UNIT],
    result: { symbol: "P", get, gradient: () => undefined },
    cell: (i, j, all) => {
      const best = ranked(at(all, states()[i].name), 3).map(({ id, p }) => `${quoted(outcomeOf(id))} ${percent(p)}`);
      return `p = ${percent(get(all).at(i, j))}; the most likely here: ${best.join(", ")}`;
    },
  };
}

// The states of the residual stream at the chosen row, from the embedding up
function streamStep(side) {
  const all = stages(side);
  const rowsFrom = (found) => {
    const stream = new Matrix(all.length, data.config.d_model);
    all.forEach(({ name }, i) => found[name] && stream.row(i).set(found[name].row(place(side))));
    return stream;
  };
  return {
    id: "residual",
    label: "Stream",
    title: "The residual stream: one row from the embedding to the last layer",
    formula: "x ← x + sublayer(x)",
    sign: [],
    factors: [],
    rows: "own",
    glance: false,
    names: all.map(({ label }) => label),
    axes: ["state", "feature"],
    result: { symbol: "x", get: rowsFrom, gradient: ({ gradients: found }) => rowsFrom(found) },
    cell: (i, j, values) => {
      const row = rowsFrom(values).row(i);
      return `feature ${j + 1} of ${quoted(words(side)[place(side)])} = ${rounded(row[j])}; the length of this row is ${rounded(length(row))}`;
    },
    panel: "residual",
  };
}

// The states of the stack, bottom up: { name, label, added, from }. added: the output of a sub-layer, which goes into the
// next state; from: what a sum adds
function stages(side) {
  const first = data.config.norm_first;
  const stack = translates ? { source: "encoder", target: "decoder" }[side] : "blocks";
  const input = { source: "src_input", target: "tgt_input" }[side];
  const parts = { encoder: ["attention"], decoder: ["self_attention", "cross_attention"], blocks: ["attention"] }[
    stack
  ];
  const found = translates
    ? [
        { name: `${input}.embedding.out`, label: "embedding E" },
        { name: `${input}.out`, label: "√D · E + position" },
      ]
    : [
        { name: "embedding.out", label: "embedding E" },
        ...(value("position.out") ? [{ name: "position.out", label: `E + ${fills ? "segment + " : ""}position` }] : []),
        ...(fills ? [{ name: "norm.out", label: "LayerNorm" }] : []),
      ];
  const layers = KINDS.find(({ rows }) => rows === side)?.layers ?? 0;
  for (let i = 0; i < layers; i++) {
    [...parts, "feed_forward"].forEach((part, n) => {
      const label = `${PARTS[part]} ${i + 1}`;
      found.push({ name: `${stack}.${i}.${part}.out`, label: `+ ${label}`, added: true });
      found.push({
        name: `${stack}.${i}.add_norm${n + 1}.out`,
        label: first ? "= sum" : "= Add & Norm",
        from: `after ${label}`,
      });
    });
  }
  const last = { encoder: "encoder_norm", decoder: "decoder_norm", blocks: "norm" }[stack];
  if (first) found.push({ name: `${last}.out`, label: "last LayerNorm" });
  return found;
}
