// The steps below the first layer, and those above the last.

function inputSteps(side) {
  const prefix = translates ? `${side === "source" ? "src" : "tgt"}_input.` : "";
  const ids = () => (side === "source" ? source() : result.given);
  const [e, x] = [kept("E", `${prefix}embedding.out`), kept("X", `${prefix}position.out`)];
  const row = (i, j, all) => `Row ${ids()[i]} of the table, feature ${j + 1}: ${rounded(e.get(all).at(i, j))}`;
  const found = [step("embedding", "Embedding", "Every token has a row in the table", "x = E[id]", side, e, row)];
  const position = value(`${prefix}position.out`);
  if (!position) return found;
  const segment = fills && kept("G", "segment.out");
  if (fills) {
    const title = "Which text of a pair: the first [SEP] ends the first one";
    const cell = (i, j, all) => `${cellName("G", i, j)} = ${rounded(segment.get(all).at(i, j))}`;
    found.push(step("segment", "Segment", title, "g = G[0] up to the first [SEP], G[1] after it", side, segment, cell));
  }
  const scale = translates || data.config.positions === "sinusoidal" ? Math.sqrt(data.config.d_model) : 1;
  const others = segment ? [e, segment] : [e];
  const rest = (sum, i, all) => others.reduce((left, part) => left - (part === e ? scale : 1) * part.get(all).data[i], sum);
  const pe = {
    symbol: "P",
    get: (all) => new Matrix(position.rows, position.columns, x.get(all).data.map((sum, i) => rest(sum, i, all))),
    gradient: x.gradient,
  };
  const factors = [...others, pe];
  const times = scale === 1 ? "" : `${rounded(scale)} · `;
  const cell = (i, j, all) => {
    const terms = factors.map((part, n) => (n || times ? inside : rounded)(part.get(all).at(i, j)));
    return `${cellName("X", i, j)} = ${times}${terms.join(" + ")} = ${rounded(x.get(all).at(i, j))}`;
  };
  const formula = `x = ${times && "√d_model · "}E[id] + ${segment ? "G[segment] + " : ""}P[position]`;
  const sign = [times ? `· ${rounded(scale)} +` : "+", ...(segment ? ["+"] : []), "="];
  found.push(step("position", "+ Position", "The word, and where it stands", formula, side, x, cell, { sign, factors }));
  if (fills) found.push(normStep("norm0", "norm", side, x));
  return found;
}

const byNumber = (id, label, title, symbol, name, u, more) => {
  const result = kept(symbol, more.path);
  const cell = (i, j, all) => `${cellName(symbol, i, j)} = ${name}(${rounded(u.get(all).at(i, j))}) = ${rounded(result.get(all).at(i, j))}`;
  const sign = [`→ ${name} →`];
  return step(id, label, title, `${symbol} = ${name}(U), number by number`, "target", result, cell, { sign, factors: [u], ...more });
};

// The layers of a BERT between its last block and the logits
function headSteps() {
  const [w, u] = ["mlm_head.linear", kept("U", "mlm_head.linear.out")];
  const given = { rows: "target", left: kept("X", "hidden"), right: weight("W", `${w}.w`), result: u, bias: biasOf(`${w}.b`) };
  const acted = byNumber("head-act", ACTIVATION, "The activation before the guess", "H", ACTIVATION, u, { path: "mlm_head.hidden" });
  const first = product("head", "W", "Before the guess: a linear map", "U = X W + b", given);
  return [first, acted, normStep("norm-last", "mlm_head.norm", "target", acted.result)];
}

// The layer of a classifier between the last block and the logits
function poolSteps() {
  const [x, p] = [kept("X", "hidden"), kept("P", "pooler.out")];
  const [title, names] = ["One vector for the whole text", ["text"]];
  if (data.config.pooling === "mean") {
    const mean = (i, j, all) => `${cellName("P", i, j)} = the mean of column ${j + 1} of X = ${rounded(p.get(all).at(i, j))}`;
    return [step("pool", "Pool", title, "p = mean of the rows of X", "target", p, mean, { sign: ["→ mean →"], factors: [x], names })];
  }
  const [w, u] = ["pooler.linear", kept("U", "pooler.linear.out")];
  const left = { symbol: "X₁", get: (all) => x.get(all)?.slice(0, 1), gradient: (found) => x.gradient(found)?.slice(0, 1) };
  const given = { rows: "target", left, right: weight("W", `${w}.w`), result: u, bias: biasOf(`${w}.b`), names };
  return [
    product("pool", "Pool", "The first row alone goes on: it has seen all others", "U = X₁ W + b", given),
    byNumber("pool-act", "tanh", title, "P", "tanh", u, { path: "pooler.out", names }),
  ];
}

const CANDIDATES = 10; // tokens that the last steps show

function outputSteps() {
  const t = scoredRow(place("target"));
  const ids = ranked(model.writable(value("output.out").row(t)), CANDIDATES).map(({ id }) => id);
  const next = CLASSES ? null : following()[t]; // of the text: it is shown too
  if (next !== null && !ids.includes(next)) ids[ids.length - 1] = next;
  const names = ids.map(outcomeOf);
  const token = CLASSES ? "class" : UNIT;
  const whose = CLASSES ? { names: ["text"] } : {};
  const columns = { columns: names, axes: ["position", CLASSES ? token : `most likely ${token}s`], ...whose };
  const some = (matrix) => rowsOf(matrix.transposed, ids).transposed;
  const w = model.weights["output.table"]
    ? weight("Eᵀ", "output.table", (matrix) => rowsOf(matrix, ids).transposed)
    : weight("W", "output.w", some);
  const bias = biasOf("output.b", some);
  const logits = values("U", (all) => all["output.out"], some);
  const probabilities = (all) => some(softmaxRows(all["output.out"]));
  const pCell = (i, j, all) => {
    const row = all["output.out"].row(i);
    const most = Math.max(...row);
    const total = row.reduce((sum, s) => sum + Math.exp(s - most), 0);
    const shares = `${rounded(Math.exp(row[ids[j]] - most))} / ${rounded(total)} (both divided by e^${rounded(most)})`;
    const sum = `e^${rounded(row[ids[j]])} / Σ e^U over ${row.length} ${CLASSES ? "classes" : "tokens"}`;
    return `${cellName("P", i, j)} = ${sum} = ${shares} ${isPercent(probabilities(all).at(i, j))}`;
  };
  const pTitle = CLASSES ? "The class of the text" : fills ? `The ${UNIT} at this position` : `The next ${UNIT}`;
  const soft = { sign: ["→ softmax →"], factors: [logits], weights: true, ...columns };
  const own = { glance: false };
  const chosen = (all) => chances(all["output.out"].row(t), ids);
  const how = "p = softmax(u / temperature), of which top-k and top-p keep the most likely";
  const howCell = (i, j, all) => `p of ${quoted(names[j])} ${isPercent(chosen(all).at(i, j))}${i ? `, ${howText()}` : ""}`;
  const two = { ...own, names: ["temperature 1", "as chosen"], columns: names, axes: ["how", token], weights: true };
  const lossCell = (i, j, all) => {
    const id = targets()[i];
    if (id === null) return "no target: the text does not say what comes next";
    const [p, l] = lossRows(all).row(i);
    return `−ln p(${quoted(outcomeOf(id))}) = −ln ${p.toPrecision(3)} = ${precise3(l)}`;
  };
  const none = { hidden: (i) => targets()[i] === null, crossed: "no target" };
  const losses = { ...own, ...whose, ...none, columns: ["p(target)", "−ln p"], axes: ["position", ""], panel: "training" };
  const moves = (i, j) => {
    const { name, step: next, moved: past, size } = movedMost()[i];
    const by = j ? `the steps so far have moved ${name} by ${precise(past)}` : `one step changes ${name} by ‖η ∂L/∂w‖ = ${precise(next)}`;
    return `${by}; its length is ${precise(size)}`;
  };
  const share = { columns: ["next step", "so far"], axes: ["parameter", "% of ‖w‖"] };
  const moved = { ...own, ...share, names: () => movedMost().map(({ name }) => name), panel: "training" };
  return [
    product("logits", "Logits", `A logit for every ${token}`, `U = X ${w.symbol}${bias ? " + b" : ""}`, {
      ...{ rows: "target", left: kept("X", "output.x"), right: w, result: logits, bias, ...columns },
    }),
    step("probabilities", "Softmax", pTitle, "p = softmax(u)", "target", computed("P", probabilities), pCell, soft),
    ...(CLASSES || fills ? [] : [step("choice", "Choice", `How the next ${UNIT} is chosen`, how, "own", computed("P", chosen), howCell, two)]),
    step("loss", "Loss", "The loss of every row", `L = ${CLASSES ? "" : "the mean of "}−ln p(target)`, "target", computed("L", lossRows), lossCell, losses),
    step("moved", "SGD", "One step of SGD: the parameters that it moves most", "w ← w − η ∂L/∂w", "own", computed("w", () => movedMatrix(movedMost())), moves, moved),
    lensStep(ids, names),
    ...(model.finalNorm !== null && !state.changes.some(({ type }) => type === "residual") ? [wroteStep(t)] : []),
  ];
}

// p of some tokens: as the logits give it, and as one of them is chosen
function chances(logits, ids) {
  const plain = softmax(model.writable(logits));
  const best = choose(model.writable(logits), { temperature: 0 });
  const greedy = plain.map((_, id) => (id === best ? 1 : 0));
  const drawn = state.how.temperature ? distribution(model.writable(logits), state.how) : greedy;
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
  const states = stages("target").filter(({ name, added }) => !added && name !== `${model.finalNorm}.out`).slice(1);
  const t = place("target");
  const at = (all, name) => softmax(model.writable(model.lens(CLASSES ? all[name] : all[name].slice(t, t + 1)).data));
  const get = (all) => {
    const p = new Matrix(states.length, ids.length);
    states.forEach(({ name }, i) => {
      const row = at(all, name);
      p.row(i).set(ids.map((id) => row[id]));
    });
    return p;
  };
  const cell = (i, j, all) => {
    const best = ranked(at(all, states[i].name), 3).map(({ id, p }) => `${quoted(outcomeOf(id))} ${percent(p)}`);
    return `p ${isPercent(get(all).at(i, j))}; the most likely here: ${best.join(", ")}`;
  };
  const title = `The logit lens: the ${CLASSES ? "class" : `next ${UNIT}`}, state by state`;
  const formula = `p = softmax(${CLASSES ? "pool" : "norm"}(x) W) of every earlier state x`;
  const more = { glance: false, weights: true, columns: names, axes: ["state", CLASSES ? "class" : UNIT] };
  return step("lens", "Lens", title, formula, "own", computed("P", get), cell, { ...more, names: states.map(({ label, from }) => from ?? label) });
}

// The token whose logit is split: the one that follows row t, or the best guess
const wrote = (t) => targets()[t] ?? best(result, t);

// What each head and each feed-forward network adds to the logit of the token that is written after row t
function wroteStep(t) {
  const id = wrote(t);
  const found = new Map(); // of the values of a run
  const of = (all) => found.get(all) ?? found.set(all, contributions(model, all, id, t)).get(all);
  const parts = () => of(result.values).parts; // computed when the step is open
  const get = (all) => new Matrix(parts().length, H + 1, Float64Array.from(of(all).parts.flatMap(({ heads, feedForward }) => [...heads, feedForward ?? 0])));
  const missing = (i, j) => j === H && parts()[i].feedForward === null;
  const token = quoted(outcomeOf(id));
  const cell = (i, j, all) => {
    const { logit, embedding, heads, feedForwards, biases } = of(all);
    const part = j === H ? "the feed-forward network" : `head ${j + 1}`;
    const own = missing(i, j) ? "" : `${part} of ${parts()[i].name} adds ${rounded(get(all).at(i, j))}. `;
    const terms = `embedding ${inside(embedding)} + heads ${inside(heads)} + feed-forward networks ${inside(feedForwards)} + biases ${inside(biases)}`;
    return `${own}All of it: ${terms} = ${rounded(logit)}, the logit of ${token}`;
  };
  const columns = [...Array.from({ length: H }, (_, h) => `${h + 1}`), "feed-forward"];
  const more = { glance: false, names: () => parts().map(({ name }) => name), columns, axes: ["layer", "head"], hidden: missing, crossed: "none" };
  const after = quoted(tokenOf(result.given[t]));
  const formula = `logit of ${token}, which follows ${after} = Σ (what a part adds) · d, with the scales of the norms held fixed`;
  return step("wrote", "Who", "Who wrote the next token?", formula, "own", computed("logit", get), cell, more);
}

// The states of the residual stream at the chosen row, from the embedding up
function streamStep(side) {
  const all = stages(side);
  const rowsFrom = (found) => {
    const stream = new Matrix(all.length, data.config.d_model);
    all.forEach(({ name }, i) => found[name] && stream.row(i).set(found[name].row(place(side))));
    return stream;
  };
  const result = { symbol: "x", get: rowsFrom, gradient: ({ gradients: found }) => rowsFrom(found) };
  const cell = (i, j, values) => {
    const row = rowsFrom(values).row(i);
    return `feature ${j + 1} of ${quoted(words(side)[place(side)])} = ${rounded(row[j])}; the length of this row is ${rounded(length(row))}`;
  };
  const title = "The residual stream: one row from the embedding to the last layer";
  const more = { glance: false, names: all.map(({ label }) => label), axes: ["state", "feature"], panel: "residual" };
  return step("residual", "Stream", title, "x ← x + sublayer(x)", "own", result, cell, more);
}

// The states of the stack, bottom up: { name, label, added, from }. added: the output of a sub-layer, which goes into the
// next state; from: what a sum adds
function stages(side) {
  const first = data.config.norm_first;
  const kinds = KINDS.filter(({ rows }) => rows === side);
  const stack = translates ? { source: "encoder", target: "decoder" }[side] : "blocks";
  const input = translates ? `${{ source: "src", target: "tgt" }[side]}_input.` : "";
  const placed = translates ? "√d_model · E + position" : `E + ${fills ? "segment + " : ""}position`;
  const found = [{ name: `${input}embedding.out`, label: "embedding E" }];
  if (value(`${input}position.out`)) found.push({ name: `${input}${translates ? "" : "position."}out`, label: placed });
  if (fills) found.push({ name: "norm.out", label: NORM });
  for (let i = 0; i < (kinds[0]?.layers ?? 0); i++)
    [...kinds.map(({ part }) => part), "feed_forward"].forEach((part, n) => {
      const label = `${PARTS[part]} ${i + 1}`;
      found.push({ name: `${stack}.${i}.${part}.out`, label: `+ ${label}`, added: true });
      found.push({ name: `${stack}.${i}.add_norm${n + 1}.out`, label: first ? "= sum" : "= Add & Norm", from: `after ${label}` });
    });
  const last = { encoder: "encoder_norm", decoder: "decoder_norm", blocks: "norm" }[stack];
  if (first) found.push({ name: `${last}.out`, label: `last ${NORM}` });
  return found;
}
