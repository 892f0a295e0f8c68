// The steps of the computation, in order: what each multiplies or maps, its formula, and what is behind one cell.
//
// A step is { id, label, title, formula, sign, rows, columns, factors, result, cell }
//   rows: the side whose words are the rows;  columns: "keys", "words" or undefined for features
//   factors, result: { symbol, get(values), gradient(backward) } of matrices
//   cell(i, j): the sum behind one cell, as text
// values: those of a run, or the gradients of a backward pass, which have the same names

const whole = (name) => (values) => values[name];
const ofHead = (name, h) => (values) => values[name]?.[h];
const group = (h) => Math.floor((h * (data.config.num_kv_heads ?? H)) / H);

function columnsOf(matrix, from, to) {
  const part = new Matrix(matrix.rows, to - from);
  for (let i = 0; i < matrix.rows; i++) part.row(i).set(matrix.row(i).subarray(from, to));
  return part;
}
const rowsOf = (matrix, ids) => {
  const part = new Matrix(ids.length, matrix.columns);
  ids.forEach((id, i) => part.row(i).set(matrix.row(id)));
  return part;
};

// A weight, or the columns of a head of it. Its gradient has the name of the first weight with the same matrix.
function weight(symbol, name, cut = (matrix) => matrix) {
  const owner = Object.keys(model.weights).find((other) => model.weights[other] === model.weights[name]);
  return {
    symbol,
    get: () => cut(model.weights[name]),
    gradient: ({ weights }) => weights[owner] && cut(weights[owner]),
  };
}
function values(symbol, get, map = (matrix) => matrix) {
  const found = (all) => (get(all) ? map(get(all)) : undefined);
  return { symbol, get: found, gradient: ({ gradients }) => found(gradients) };
}

const term = (a, b) => `${rounded(a)} · ${b < 0 ? `(${rounded(b)})` : rounded(b)}`;
const subscript = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
const cellName = (symbol, i, j) => `${symbol}${subscript(i + 1)},${subscript(j + 1)}`;

// Σ of products, the largest first; the rest of a long sum is one number.
function sumText(left, right, extra = []) {
  const terms = Array.from(left, (a, k) => [a, right[k]]).filter(([a, b]) => a !== 0 && b !== 0);
  terms.sort((one, other) => Math.abs(other[0] * other[1]) - Math.abs(one[0] * one[1]));
  const shown = terms.slice(0, 5).map(([a, b]) => term(a, b));
  const rest = terms.slice(5).reduce((sum, [a, b]) => sum + a * b, 0);
  if (terms.length > 5) shown.push(`${rounded(rest)} (${terms.length - 5} more)`);
  return [...(shown.length ? shown : ["0"]), ...extra].join(" + ").replaceAll("+ −", "− ");
}

// left · right (+ bias) = result, for the matrices of a run
function product(id, label, title, formula, { rows, columns, left, right, result, bias, divide = 1, note = "" }) {
  const cell = (i, j, values) => {
    const [a, b, y] = [left.get(values), right.get(values), result.get(values)];
    const extra = bias ? [`bias ${rounded(bias().data[j])}`] : [];
    const sum = sumText(a.row(i), b.transposed.row(j), extra);
    const over = divide === 1 ? sum : `(${sum}) / ${rounded(divide)}`;
    return `${cellName(result.symbol, i, j)} = ${over} = ${rounded(y.at(i, j))}${note}`;
  };
  return {
    id,
    label,
    title,
    formula,
    sign: ["·", divide === 1 ? "=" : `/ ${rounded(divide)} =`],
    rows,
    columns,
    factors: [left, right],
    result,
    cell,
  };
}

// --- attention -------------------------------------------------------------------------------------------------------

function attentionSteps(kind, layer, h) {
  const p = kind.path(layer);
  const [K, G] = [value(`${p}.q`)[0].columns, data.config.num_kv_heads ?? H];
  const from = kind.keys === kind.rows ? `${p}.x` : `${p}.memory`;
  const [x, other] = [values("X", whole(`${p}.x`)), values(kind.keys === kind.rows ? "X" : "M", whole(from))];
  const turned = data.config.frequencies ? ", then turned by its position" : "";
  const part = (name, own, n, count, side, input, title) => {
    const cut = (matrix) => columnsOf(matrix, n * K, (n + 1) * K);
    const b = model.weights[`${p}.b_${name}`];
    const symbol = name.toUpperCase();
    return product(name, symbol, title, `${symbol} = ${input.symbol} W_${symbol}${b ? " + b" : ""}${turned}`, {
      rows: side,
      left: input,
      right: weight(`W_${symbol}`, `${p}.w_${name}`, cut),
      result: values(symbol, ofHead(`${p}.${name}`, n)),
      bias: b && (() => cut(b)),
      note: turned && ` after turning`,
    });
  };
  const scale = state.changes.some(({ type }) => type === "scale") ? 1 : Math.sqrt(K);
  const q = part("q", x, h, H, kind.rows, x, "Queries: what each word looks for");
  const k = part("k", other, group(h), G, kind.keys, other, "Keys: what each word offers");
  const v = part("v", other, group(h), G, kind.keys, other, "Values: what each word gives");
  const transposed = values("Kᵀ", ofHead(`${p}.k`, group(h)), (matrix) => matrix.transposed);
  const [S, A] = [values("S", ofHead(`${p}.scores`, h)), values("A", ofHead(`${p}.weights`, h))];
  const z = values(
    "Z",
    (all) => all[`${p}.concat`],
    (matrix) => columnsOf(matrix, h * K, (h + 1) * K),
  );
  const scores = product(
    "scores",
    "S = QKᵀ",
    "Scores: how well each query fits each key",
    scale === 1 ? "S = Q Kᵀ" : "S = Q Kᵀ / √K",
    {
      rows: kind.rows,
      columns: "keys",
      left: q.result,
      right: transposed,
      result: S,
      divide: scale,
    },
  );
  const softmaxCell = (i, j, all) => {
    const row = S.get(all).row(i);
    const powers = Array.from(row, (s) => Math.exp(s - Math.max(...row)));
    const total = powers.reduce((a, b) => a + b, 0);
    const share = `e^${rounded(row[j])} / Σ e^S = ${rounded(powers[j])} / ${rounded(total)} (both divided by e^${rounded(Math.max(...row))})`;
    return `${cellName("A", i, j)} = ${row[j] === -Infinity ? "0: the mask hides this key" : `${share} = ${rounded(A.get(all).at(i, j))}`}`;
  };
  const softmaxStep = {
    id: "weights",
    label: "A",
    title: "Attention weights: each row adds up to 1",
    formula: "A = softmax(S), row by row",
    sign: ["→ softmax →"],
    rows: kind.rows,
    columns: "keys",
    factors: [S],
    result: A,
    cell: softmaxCell,
  };
  const sum = product("heads", "Z = AV", "The mean of the values, with these weights", "Z = A V", {
    rows: kind.rows,
    left: A,
    right: v.result,
    result: z,
  });
  const bo = model.weights[`${p}.b_o`];
  const out = product(
    "out",
    "W_O",
    "All heads side by side, mixed",
    `Y = Concat(Z₁ … Z${subscript(H)}) W_O${bo ? " + b" : ""}`,
    {
      rows: kind.rows,
      left: values("Z", whole(`${p}.concat`)),
      right: weight("W_O", `${p}.w_o`),
      result: values("Y", whole(`${p}.out`)),
      bias: bo && (() => bo),
    },
  );
  return [q, k, v, scores, softmaxStep, sum, out];
}

// --- norms, sums, feed-forward ---------------------------------------------------------------------------------------

// LayerNorm or RMSNorm from an input to `${path}.out`
function normStep(id, path, rows, input) {
  const rms = data.config.norm === "rms";
  const result = values("Y", whole(`${path}.out`));
  const cell = (i, j, all) => {
    const row = input.get(all).row(i);
    const mean = rms ? 0 : row.reduce((a, b) => a + b, 0) / row.length;
    const [gamma, beta] = ["gamma", "beta"].map((name) => model.weights[`${path}.${name}`]?.data[j]);
    const inverse = all[`${path}.${rms ? "inv_rms" : "inv_std"}`].data[i];
    const top = rms ? rounded(row[j]) : `(${rounded(row[j])} − ${rounded(mean)})`;
    return `${cellName("Y", i, j)} = ${rounded(gamma)} · ${top} / ${rounded(1 / inverse)}${beta === undefined ? "" : ` + ${rounded(beta)}`} = ${rounded(result.get(all).at(i, j))}`;
  };
  const formula = rms ? "y = γ x / √mean(x²)" : "y = γ (x − μ) / σ + β, for each row";
  return {
    id,
    label: rms ? "RMSNorm" : "LayerNorm",
    title: "Every row on one scale",
    formula,
    sign: ["→ norm →"],
    rows,
    factors: [input],
    result,
    cell,
  };
}

function sumStep(id, rows, before, added, result) {
  const none = state.changes.some(({ type }) => type === "residual");
  const cell = (i, j, all) =>
    `${cellName("Y", i, j)} = ${none ? "" : `${rounded(before.get(all).at(i, j))} + `}${rounded(added.get(all).at(i, j))} = ${rounded(result.get(all).at(i, j))}`;
  const formula = none ? "y = sublayer(x): the residual path is cut" : "y = x + sublayer(x)";
  return {
    id,
    label: "Add",
    title: "The residual path: the sub-layer adds to its input",
    formula,
    sign: ["+", "="],
    rows,
    factors: [before, added],
    result,
    cell,
  };
}

// The steps of a sub-layer with Add & Norm around it. n: which of the block it is
function around(block, n, rows, input, part, inside) {
  const p = `${block}.add_norm${n}`;
  const out = values("Y", whole(`${block}.${part}.out`));
  if (data.config.norm_first)
    return [
      normStep(`norm${n}`, `${p}.norm`, rows, input),
      ...inside,
      sumStep(`add${n}`, rows, input, out, values("X", whole(`${p}.out`))),
    ];
  const sum = values("X + Y", whole(`${p}.sum`));
  return [...inside, sumStep(`add${n}`, rows, input, out, sum), normStep(`norm${n}`, `${p}.norm`, rows, sum)];
}

function feedForwardSteps(block, rows) {
  const p = `${block}.feed_forward`;
  const { activation, gated } = data.config;
  const name = { relu: "ReLU", silu: "SiLU" }[activation] ?? "GELU";
  const x = values("X", whole(`${p}.x`));
  const bias = (n) => model.weights[`${p}.b${n}`] && (() => model.weights[`${p}.b${n}`]);
  const plus = bias(1) ? " + b" : "";
  const hidden = values("H", whole(`${p}.hidden`));
  const first = (id, label, symbol, part, w) =>
    product(id, label, "Every row alone goes through the same network", `${symbol} = X ${w}${plus}`, {
      rows,
      left: x,
      right: weight(w, `${p}.w${part}`),
      result: values(symbol, whole(`${p}.${id}`)),
      bias: bias(part),
    });
  const before = gated
    ? [first("gate", "Gate", "G", "_gate", "W_g"), first("value", "W₁", "U", "1", "W₁")]
    : [first("before", "W₁", "U", "1", "W₁")];
  const acted = {
    id: "hidden",
    label: name,
    title: "The activation: which units are on",
    formula: gated ? `H = ${name}(G) ⊙ U` : `H = ${name}(U), number by number`,
    sign: [gated ? "⊙" : `→ ${name} →`, "="].slice(0, before.length),
    rows,
    factors: before.map(({ result }) => result),
    result: hidden,
    cell: (i, j, all) =>
      `${cellName("H", i, j)} = ${before.map(({ result }, n) => (n === before.length - 1 && gated ? rounded(result.get(all).at(i, j)) : `${name}(${rounded(result.get(all).at(i, j))})`)).join(" · ")} = ${rounded(hidden.get(all).at(i, j))}`,
  };
  const second = product("ffn", "W₂", "Each unit that is on adds its row of W₂", `Y = H W₂${plus}`, {
    rows,
    left: hidden,
    right: weight("W₂", `${p}.w2`),
    result: values("Y", whole(`${p}.out`)),
    bias: bias(2),
  });
  return [...before, acted, second];
}

// --- input and output ------------------------------------------------------------------------------------------------

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
  const x = values("X", whole(`${prefix}position.out`));
  const scale = translates || data.config.positions === "sinusoidal" ? Math.sqrt(data.config.d_model) : 1;
  const pe = {
    symbol: "PE",
    get: (all) =>
      new Matrix(
        position.rows,
        position.columns,
        x.get(all).data.map((sum, i) => sum - scale * e.get(all).data[i]),
      ),
    gradient: ({ gradients }) => gradients[`${prefix}position.out`],
  };
  found.push({
    id: "position",
    label: "+ Position",
    title: "The word, and where it stands",
    formula: scale === 1 ? "x = E[id] + P[position]" : "x = √D · E[id] + PE[position]",
    sign: [scale === 1 ? "+" : `· ${rounded(scale)} +`, "="],
    rows: side,
    factors: [e, pe],
    result: x,
    cell: (i, j, all) =>
      `${cellName("X", i, j)} = ${scale === 1 ? "" : `${rounded(scale)} · `}${rounded(e.get(all).at(i, j))} + ${rounded(pe.get(all).at(i, j))} = ${rounded(x.get(all).at(i, j))}`,
  });
  return found;
}

const CANDIDATES = 10; // tokens that the last steps show

function outputSteps() {
  const t = place("target");
  const ids = ranked(model.writable(value("output.out").row(t)), CANDIDATES).map(({ id }) => id);
  const names = ids.map(tokenOf);
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
    "A score for every token; here the ten best of the chosen row",
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
    return `${cellName("P", i, j)} = e^${rounded(row[ids[j]])} / Σ e^U over ${row.length} tokens = ${rounded(Math.exp(row[ids[j]] - most))} / ${rounded(total)} (both divided by e^${rounded(most)}) = ${percent(p.get(all).at(i, j))}`;
  };
  const second = {
    id: "probabilities",
    label: "Softmax",
    title: `The next ${UNIT}`,
    formula: "p = softmax(u)",
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
    formula: "L = −ln p(target), the mean of the rows",
    sign: [],
    rows: "target",
    factors: [],
    panel: "training",
  };
  const lens = {
    id: "lens",
    label: "Lens",
    title: "The logit lens: the next token, layer by layer",
    formula: "softmax(LayerNorm(x) W) of every earlier state x",
    sign: [],
    rows: "target",
    factors: [],
    panel: "lens",
  };
  return [first, second, loss, lens];
}

// The rows of the diagram, in the order of computation: { title, steps, kind }
function flow() {
  const { kind, layer } = state;
  const side = kind.rows;
  const input = {
    title: side === "source" ? "Input" : translates ? "Input (so far)" : "Input",
    steps: inputSteps(side),
  };
  const stack = {
    id: "residual",
    label: "Stream",
    title: "The residual stream: one row from the embedding to the last layer",
    formula: "x ← x + sublayer(x)",
    sign: [],
    rows: side,
    factors: [],
    panel: "residual",
  };
  input.steps.push(stack);
  const block = kind.block(layer);
  const inputs = { encoder: ["src_input.out"], decoder: ["tgt_input.out"], blocks: ["input"] }[kind.stack];
  let x = values("X", whole(layer ? `${kind.stack}.${layer - 1}.out` : inputs[0]));
  const rows = [input];
  KINDS.filter(({ stack }) => stack === kind.stack).forEach((each, i) => {
    const head = each === kind ? state.head : 0;
    rows.push({
      title: capital(each.title.replace(/^(en|de)coder /, "")),
      kind: each,
      steps: around(block, i + 1, side, x, each.part, attentionSteps(each, layer, head)),
    });
    x = values("X", whole(`${block}.add_norm${i + 1}.out`));
  });
  rows.push({
    title: "Feed-forward",
    steps: around(block, rows.length, side, x, "feed_forward", feedForwardSteps(block, side)),
  });
  if (side === "target") {
    const last = `${model.finalNorm}.out`;
    const top = outputSteps();
    if (value(last))
      top.unshift(normStep("norm", model.finalNorm, side, values("X", whole(`${kind.stack}.${kind.layers - 1}.out`))));
    rows.push({ title: "Output", steps: top });
  }
  return rows;
}

// The step that is open, in its row.
function openStep(rows) {
  for (const row of rows) {
    if (
      row.kind &&
      row.kind !== state.kind &&
      ["q", "k", "v", "scores", "weights", "heads", "out"].includes(state.step)
    )
      continue;
    const step = row.steps.find(({ id }) => id === state.step);
    if (step) return { row, step };
  }
  state.step = "weights";
  return openStep(rows);
}
