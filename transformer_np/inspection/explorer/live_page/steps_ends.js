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
    CLASSES ? "A score for every class" : "A score for every token; here the ten best of the chosen row",
    `U = X ${w.symbol}${b ? " + b" : ""}`,
    { rows: "target", columns: names, left: x, right: w, result: logits, bias: b && (() => some(b)) },
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
    factors: [logits],
    result: p,
    cell,
    weights: true,
  };
  const loss = {
    id: "loss",
    label: "Loss",
    title: "The loss, its gradient, and one step of SGD",
    formula: CLASSES ? "L = −ln p(target)" : "L = −ln p(target), the mean of the rows",
    sign: [],
    rows: "target",
    factors: [],
    panel: "training",
  };
  const lens = {
    id: "lens",
    label: "Lens",
    title: `The logit lens: the ${CLASSES ? "class" : "next token"}, layer by layer`,
    formula: `softmax(${CLASSES ? "pool" : "LayerNorm"}(x) W) of every earlier state x`,
    sign: [],
    rows: "target",
    factors: [],
    panel: "lens",
  };
  return [{ ...first, ...whose }, second, loss, lens];
}
