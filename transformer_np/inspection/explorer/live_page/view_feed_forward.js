// The feed-forward network of a layer at one token: its units, and what the strongest of them push towards.

const UNITS = 10;

function drawFeedForward() {
  const side = state.kind.rows;
  const t = place();
  const block = path().replace(/\.[a-z_]+$/, "");
  const [x, before, hidden, out] = ["x", "before", "hidden", "out"].map((name) =>
    value(`${block}.feed_forward.${name}`).row(t),
  );
  const w2 = model.weights[`${block}.feed_forward.w2`];
  const name = { relu: "ReLU", silu: "SiLU" }[data.config.activation] ?? "GELU";
  const active = hidden.filter((h) => h > 0).length;
  byId("ffn-text").replaceChildren(
    "Layer ",
    String(state.layer + 1),
    ", row ",
    isolated(rowName(side, t)),
    `: ${x.length} features become ${hidden.length} units, ${active} of them positive after ${name}; `,
    `then ${out.length} features again.`,
  );
  const strips = [
    ["input x", x],
    ["x W₁ + b₁", before],
    ["after the activation", hidden],
    ["output", out],
  ];
  byId("ffn-strips").replaceChildren(
    ...strips.map(([name, row]) => element("div", {}, element("span", {}, name), strip(row, name))),
  );
  const strength = (u) => Math.abs(hidden[u]) * length(w2.row(u));
  const order = Array.from(hidden, (_, u) => u)
    .sort((a, b) => strength(b) - strength(a))
    .slice(0, UNITS);
  const writes = side === "target"; // only the decoder's features are turned into words
  const rows = order.map((u) => {
    const cells = [heading(String(u + 1)), rounded(hidden[u]), rounded(strength(u))];
    if (writes) cells.push(isolated(pushed(w2.row(u), Math.sign(hidden[u]))));
    return tableRow("td", ...cells);
  });
  fill(byId("ffn-table"), ["unit", "value", "length added", ...(writes ? ["pushes most towards"] : [])], rows);
  byId("ffn-note").textContent = writes
    ? "Pushes towards: the words whose scores the unit's row of W₂ raises most, straight through the output projection."
    : "The encoder's features are not turned into words, so its units push towards none.";
}

function pushed(row, sign) {
  const scores = model.project(
    new Matrix(
      1,
      row.length,
      row.map((number) => sign * number),
    ),
  ).data;
  const bias = model.weights["output.b"]; // it is there without the unit too
  const own = bias ? scores.map((score, i) => score - bias.data[i]) : scores;
  return ranked(own, 3)
    .map(({ id }) => tokenOf(id))
    .join(", ");
}
