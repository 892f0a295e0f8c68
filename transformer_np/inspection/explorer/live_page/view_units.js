// The feed-forward network of a layer at one token: its units, and what the strongest of them push towards.

const UNITS = 5;

function drawUnits() {
  const t = place();
  const block = `${state.kind.block(state.layer)}.feed_forward`;
  const hidden = value(`${block}.hidden`).row(t);
  const w2 = model.weights[`${block}.w2`];
  const active = hidden.filter((h) => h > 0).length;
  byId("ffn-text").replaceChildren(
    "Row ",
    isolated(words(state.kind.rows)[t]),
    `: ${active} of ${hidden.length} units are positive. The strongest:`,
  );
  const strength = (u) => Math.abs(hidden[u]) * length(w2.row(u));
  const order = Array.from(hidden, (_, u) => u)
    .sort((a, b) => strength(b) - strength(a))
    .slice(0, UNITS);
  const writes = state.kind.rows === "target" && !fills; // only the decoder's features are turned into words
  const rows = order.map((u) => {
    const cells = [heading(String(u + 1)), rounded(hidden[u]), rounded(strength(u))];
    if (writes) cells.push(isolated(pushed(w2.row(u), Math.sign(hidden[u]))));
    return tableRow("td", ...cells);
  });
  fill(byId("ffn-table"), ["unit", "value", "length added", ...(writes ? ["pushes most towards"] : [])], rows);
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
