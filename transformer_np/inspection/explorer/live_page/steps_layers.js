// The steps around a sub-layer, norm and residual path, and those of the feed-forward network.

const NORM = data.config.norm === "rms" ? "RMSNorm" : "LayerNorm";

// LayerNorm or RMSNorm from an input to `${path}.out`
function normStep(id, path, rows, input) {
  const rms = NORM === "RMSNorm";
  const result = kept("Y", `${path}.out`);
  const [gamma, beta] = ["gamma", "beta"].map((name) => model.weights[`${path}.${name}`]?.data);
  const cell = (i, j, all) => {
    const row = input.get(all).row(i);
    const mean = row.reduce((a, b) => a + b, 0) / row.length;
    const inverse = all[`${path}.${rms ? "inv_rms" : "inv_std"}`].data[i];
    const top = rms ? inside(row[j]) : `(${rounded(row[j])} − ${inside(mean)})`;
    return `${cellName("Y", i, j)} = ${rounded(gamma[j])} · ${top} / ${rounded(1 / inverse)}${beta ? ` + ${inside(beta[j])}` : ""} = ${rounded(result.get(all).at(i, j))}`;
  };
  const formula = rms ? "y = γ x / √mean(x²), for each row" : `y = γ (x − μ) / σ${beta ? " + β" : ""}, for each row`;
  return step(id, NORM, "Every row on one scale", formula, rows, result, cell, { sign: ["→ norm →"], factors: [input] });
}

function sumStep(id, rows, before, added, path) {
  const none = state.changes.some(({ type }) => type === "residual");
  const result = kept("X + Y", path);
  const cell = (i, j, all) => {
    const [x, y, sum] = [before, added, result].map((part) => part.get(all).at(i, j));
    return `${cellName("X + Y", i, j)} = ${none ? "" : `${rounded(x)} + `}${inside(y)} = ${rounded(sum)}`;
  };
  const formula = none ? "y = sublayer(x): the residual path is cut" : "y = x + sublayer(x)";
  const title = "The residual path: the sub-layer adds to its input";
  return step(id, "Add", title, formula, rows, result, cell, { sign: ["+", "="], factors: [before, added] });
}

// The steps of a sub-layer with Add & Norm around it. n: which of the block it is
function around(block, n, rows, input, part, steps) {
  const p = `${block}.add_norm${n}`;
  const out = kept("Y", `${block}.${part}.out`);
  if (data.config.norm_first)
    return [normStep(`norm${n}`, `${p}.norm`, rows, input), ...steps, sumStep(`add${n}`, rows, input, out, `${p}.out`)];
  const sum = sumStep(`add${n}`, rows, input, out, `${p}.sum`);
  return [...steps, sum, normStep(`norm${n}`, `${p}.norm`, rows, sum.result)];
}

const ACTIVATION = { relu: "ReLU", silu: "SiLU" }[data.config.activation] ?? "GELU";

function feedForwardSteps(block, rows) {
  const p = `${block}.feed_forward`;
  const { gated } = data.config;
  const plus = model.weights[`${p}.b1`] ? " + b" : "";
  const axes = ["position", "unit"];
  const first = (id, label, symbol, part, w) => {
    const given = { rows, axes, left: kept("X", `${p}.x`), right: weight(w, `${p}.w${part}`), bias: biasOf(`${p}.b${part}`) };
    const title = "Every row alone goes through the same network";
    return product(id, label, title, `${symbol} = X ${w}${plus}`, { ...given, result: kept(symbol, `${p}.${id}`) });
  };
  const before = gated
    ? [first("gate", "Gate", "G", "_gate", "W_g"), first("value", "W₁", "U", "1", "W₁")]
    : [first("before", "W₁", "U", "1", "W₁")];
  const factors = before.map(({ result }) => result);
  const hidden = kept("H", `${p}.hidden`);
  const cell = (i, j, all) => {
    const [opened, value] = factors.map((part) => part.get(all).at(i, j));
    const by = gated ? ` · ${inside(value)}` : "";
    return `${cellName("H", i, j)} = ${ACTIVATION}(${rounded(opened)})${by} = ${rounded(hidden.get(all).at(i, j))}`;
  };
  const formula = gated ? `H = ${ACTIVATION}(G) ⊙ U` : `H = ${ACTIVATION}(U), number by number`;
  const sign = gated ? ["⊙", "="] : [`→ ${ACTIVATION} →`];
  const note = (i, u) => unitText(p, rows, i, u);
  const acted = { sign, factors, axes, note };
  const second = { rows, left: hidden, right: weight("W₂", `${p}.w2`), result: kept("Y", `${p}.out`), bias: biasOf(`${p}.b2`) };
  return [
    ...before,
    step("hidden", ACTIVATION, "The activation: which units are on", formula, rows, hidden, cell, acted),
    product("ffn", "W₂", "Each unit that is on adds its row of W₂", `Y = H W₂${plus}`, second),
  ];
}

// How many units of a row are on, and what a unit pushes the next word towards
function unitText(path, side, i, u) {
  const hidden = value(`${path}.hidden`).row(i);
  const row = model.weights[`${path}.w2`].row(u);
  const on = `. ${hidden.filter((h) => h > 0).length} of ${hidden.length} units of this row are positive.`;
  if (side !== "target" || fills || !hidden[u]) return on; // only the decoder's features are turned into words
  const scores = model.project(new Matrix(1, row.length, row.map((x) => Math.sign(hidden[u]) * x))).data;
  const bias = model.weights["output.b"]; // it is there without the unit too
  const own = ranked(bias ? scores.map((score, id) => score - bias.data[id]) : scores, 3);
  return `${on} Unit ${u + 1} pushes most towards ${own.map(({ id }) => quoted(tokenOf(id))).join(", ")}.`;
}
