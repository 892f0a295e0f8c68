// The steps of one head of an attention layer.

function attentionSteps(kind, layer, h) {
  const p = kind.path(layer);
  const { rows, keys } = kind;
  const K = value(`${p}.q`)[0].columns;
  const x = kept("X", `${p}.x`);
  const other = keys === rows ? x : kept("M", `${p}.memory`);
  const turned = data.config.frequencies ? ", then turned by its position" : "";
  const part = (name, own, n, side, left, title) => {
    const cut = (matrix) => columnsOf(matrix, n * K, (n + 1) * K);
    const bias = biasOf(`${p}.b_${name}`, cut);
    const symbol = name.toUpperCase();
    const [turns, note] = turned && name !== "v" ? [turned, " after turning"] : ["", ""];
    return product(name, symbol, title, `${symbol} = ${left.symbol} W_${symbol}${bias ? " + b" : ""}${turns}`, {
      ...{ rows: side, left, bias, note, axes: [own, "feature"] },
      ...{ right: weight(`W_${symbol}`, `${p}.w_${name}`, cut), result: ofHead(symbol, `${p}.${name}`, n) },
    });
  };
  const scale = state.changes.some(({ type }) => type === "scale") ? 1 : Math.sqrt(K);
  const q = part("q", "query", h, rows, x, "Queries: what each word looks for");
  const k = part("k", "key", group(h), keys, other, "Keys: what each word offers");
  const v = part("v", "value", group(h), keys, other, "Values: what each word hands on");
  const transposed = ofHead("Kᵀ", `${p}.k`, group(h), (matrix) => matrix.transposed);
  const [S, A] = [ofHead("S", `${p}.scores`, h), ofHead("A", `${p}.weights`, h)];
  const masked = (!fills && keys === "target") || state.changes.some(({ type }) => type === "key");
  const slope = data.config.slopes?.[h] ?? 0; // of ALiBi
  const raw = masked && { symbol: "S", raw: true, gradient: S.gradient, get: (all) => all[`${p}.q`] && unmasked(all) };
  // The scores before the mask: those that it leaves, and q kᵀ / √d_k where it hides
  const unmasked = (all) => {
    const [seen, products] = [S.get(all), tiedLinear(q.result.get(all), k.result.get(all))];
    const distance = (at) => Math.abs(Math.floor(at / seen.columns) - (at % seen.columns));
    return seen.map((score, at) => (score > -Infinity ? score : products.data[at] / scale - slope * distance(at)));
  };
  const z = values("Z", (all) => all[`${p}.concat`], (matrix) => columnsOf(matrix, h * K, (h + 1) * K));
  const square = { columns: "keys", axes: ["query", "key"] };
  const scores = product("scores", "S = QKᵀ", "Scores: how well each query fits each key", scale === 1 ? "S = Q Kᵀ" : "S = Q Kᵀ / √d_k", {
    ...{ rows, left: q.result, right: transposed, result: raw || S, divide: scale, ...square },
    note: slope && ` with ALiBi’s bias`,
  });
  const maskCell = (i, j, all) => {
    const score = S.get(all).at(i, j);
    return `${cellName("S", i, j)} = ${rounded(score)}${score === -Infinity ? ": the mask hides this key" : ""}`;
  };
  const softmaxCell = (i, j, all) => {
    const row = S.get(all).row(i);
    const powers = Array.from(row, (s) => Math.exp(s - Math.max(...row)));
    const total = powers.reduce((a, b) => a + b, 0);
    const share = `e^${rounded(row[j])} / Σ e^S = ${rounded(powers[j])} / ${rounded(total)} (both divided by e^${rounded(Math.max(...row))})`;
    return `${cellName("A", i, j)} = ${row[j] === -Infinity ? "0: the mask hides this key" : `${share} = ${becomes(powers[j] / total, A.get(all).at(i, j))}`}`;
  };
  const [maskTitle, maskFormula] = ["Mask: what a query must not see", "S = −∞ where the key is hidden"];
  const mask = step("mask", "Mask", maskTitle, maskFormula, rows, S, maskCell, { sign: ["→ mask →"], factors: [raw], ...square });
  const soft = { sign: ["→ softmax →"], factors: [S], ...square };
  const bias = biasOf(`${p}.b_o`);
  const mixed = `Y = Concat(Z₁ … Z${subscript(H)}) W_O${bias ? " + b" : ""}`;
  const all = { rows, left: kept("Z", `${p}.concat`), right: weight("W_O", `${p}.w_o`), result: kept("Y", `${p}.out`), bias };
  return [
    ...[q, k, v, scores],
    ...(masked ? [mask] : []),
    step("weights", "A", "Attention weights: each row adds up to 1", "A = softmax(S), row by row", rows, A, softmaxCell, soft),
    product("heads", "Z = AV", "The mean of the values, with these weights", "Z = A V", { rows, left: A, right: v.result, result: z }),
    product("out", "W_O", "All heads side by side, mixed", mixed, all),
  ];
}
