// The steps of one head of an attention layer.

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
      axes: [name === "q" ? "query" : "key", "feature"],
    });
  };
  const scale = state.changes.some(({ type }) => type === "scale") ? 1 : Math.sqrt(K);
  const q = part("q", x, h, H, kind.rows, x, "Queries: what each word looks for");
  const k = part("k", other, group(h), G, kind.keys, other, "Keys: what each word offers");
  const v = part("v", other, group(h), G, kind.keys, other, "Values: what each word gives");
  const transposed = values("Kᵀ", ofHead(`${p}.k`, group(h)), (matrix) => matrix.transposed);
  const [S, A] = [values("S", ofHead(`${p}.scores`, h)), values("A", ofHead(`${p}.weights`, h))];
  const masked = (!fills && kind.keys === "target") || state.changes.some(({ type }) => type === "key");
  const slope = data.config.slopes?.[h] ?? 0; // of ALiBi
  const raw = masked && { symbol: "S", raw: true, gradient: S.gradient, get: (all) => all[`${p}.q`] && unmasked(all) };
  // The scores before the mask: those that it leaves, and q kᵀ / √K where it hides
  const unmasked = (all) => {
    const [seen, products] = [S.get(all), tiedLinear(q.result.get(all), k.result.get(all))];
    const distance = (at) => Math.abs(Math.floor(at / seen.columns) - (at % seen.columns));
    return seen.map((score, at) => (score > -Infinity ? score : products.data[at] / scale - slope * distance(at)));
  };
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
      result: raw || S,
      divide: scale,
      axes: ["query", "key"],
      note: slope && ` with ALiBi’s bias`,
    },
  );
  const maskStep = {
    id: "mask",
    label: "Mask",
    title: "Mask: what a query must not see",
    formula: "S = −∞ where the key is hidden",
    sign: ["→ mask →"],
    rows: kind.rows,
    columns: "keys",
    axes: ["query", "key"],
    factors: [raw],
    result: S,
    cell: (i, j, all) => {
      const score = S.get(all).at(i, j);
      return `${cellName("S", i, j)} = ${rounded(score)}${score === -Infinity ? ": the mask hides this key" : ""}`;
    },
  };
  const softmaxCell = (i, j, all) => {
    const row = S.get(all).row(i);
    const powers = Array.from(row, (s) => Math.exp(s - Math.max(...row)));
    const total = powers.reduce((a, b) => a + b, 0);
    const share = `e^${rounded(row[j])} / Σ e^S = ${rounded(powers[j])} / ${rounded(total)} (both divided by e^${rounded(Math.max(...row))})`;
    return `${cellName("A", i, j)} = ${row[j] === -Infinity ? "0: the mask hides this key" : `${share} = ${becomes(powers[j] / total, A.get(all).at(i, j))}`}`;
  };
  const softmaxStep = {
    id: "weights",
    label: "A",
    title: "Attention weights: each row adds up to 1",
    formula: "A = softmax(S), row by row",
    sign: ["→ softmax →"],
    rows: kind.rows,
    columns: "keys",
    axes: ["query", "key"],
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
  return [q, k, v, scores, ...(masked ? [maskStep] : []), softmaxStep, sum, out];
}
