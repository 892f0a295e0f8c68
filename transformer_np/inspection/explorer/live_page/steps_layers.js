// The steps around a sub-layer, norm and residual path, and those of the feed-forward network.

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

const ACTIVATION_NAMES = { relu: "ReLU", silu: "SiLU" };

function feedForwardSteps(block, rows) {
  const p = `${block}.feed_forward`;
  const { activation, gated } = data.config;
  const name = ACTIVATION_NAMES[activation] ?? "GELU";
  const x = values("X", whole(`${p}.x`));
  const bias = (n) => model.weights[`${p}.b${n}`] && (() => model.weights[`${p}.b${n}`]);
  const plus = bias(1) ? " + b" : "";
  const hidden = values("H", whole(`${p}.hidden`));
  const first = (id, label, symbol, part, w) =>
    product(id, label, "Every row alone goes through the same network", `${symbol} = X ${w}${plus}`, {
      rows,
      axes: ["position", "unit"],
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
    axes: ["position", "unit"],
    note: (i, u) => unitText(p, rows, i, u),
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

// How many units of a row are on, and what a unit pushes the next word towards
function unitText(path, side, i, u) {
  const hidden = value(`${path}.hidden`).row(i);
  const row = model.weights[`${path}.w2`].row(u);
  const on = ` ${hidden.filter((h) => h > 0).length} of ${hidden.length} units of this row are positive.`;
  if (side !== "target" || fills) return on; // only the decoder's features are turned into words
  const scores = model.project(new Matrix(1, row.length, row.map((x) => Math.sign(hidden[u]) * x))).data;
  const bias = model.weights["output.b"]; // it is there without the unit too
  const own = ranked(bias ? scores.map((score, id) => score - bias.data[id]) : scores, 3);
  return hidden[u] ? `${on} Unit ${u + 1} pushes most towards ${own.map(({ id }) => quoted(tokenOf(id))).join(", ")}.` : on;
}
