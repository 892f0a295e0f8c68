// The output of a head: z = Σ A·v over the keys, and z Wᴼ, its share of the output of the layer.

function drawSum() {
  const { kind, head } = state;
  const t = place();
  const weights = value(`${path()}.weights`)[head].row(t);
  const v = value(`${path()}.v`)[head];
  const K = v.columns;
  const concat = value(`${path()}.concat`).row(t);
  const z = concat.subarray(head * K, (head + 1) * K);
  const largest = largestOf(v.data);
  const off = changesOf("head").length > 0;
  byId("sum-text").replaceChildren(
    "Row ",
    isolated(rowName(kind.rows, t)),
    ": each key contributes its value v, scaled by its weight A. The sum is z, the output of the head.",
    off ? " The head is off: z is 0." : "",
  );
  const rows = words(kind.keys).map((word, s) => {
    const share = v.row(s).map((number) => number * weights[s]);
    const line = tableRow(
      "td",
      element("th", { scope: "row" }, isolated(word)),
      rounded(weights[s]),
      strip(v.row(s), `v of ${word}`, largest),
      strip(share, `A times v of ${word}`, largest),
    );
    line.classList.toggle("faint", weights[s] === 0);
    return line;
  });
  rows.push(
    tableRow("td", heading("z = Σ A v"), rounded(weights.reduce((a, b) => a + b, 0)), "", strip(z, "z", largest)),
  );
  fill(byId("sum-table"), ["key", "A", "v", "A · v"], rows);
  drawFeature(weights, v, z, off);
  drawHeads(t, K);
}

// One feature of the sum as arithmetic: the largest terms, and the rest of them.
function drawFeature(weights, v, z, off) {
  const input = byId("feature");
  input.max = z.length;
  const j = Number(input.value) - 1;
  byId("feature-value").textContent = input.value;
  const terms = Array.from(weights, (a, s) => ({ a, x: v.at(s, j) })).filter(({ a }) => a > 0);
  terms.sort((one, other) => Math.abs(other.a * other.x) - Math.abs(one.a * one.x));
  const shown = terms.slice(0, 4).map(({ a, x }) => `${rounded(a)} · ${x < 0 ? `(${rounded(x)})` : rounded(x)}`);
  const rest = terms.slice(4).reduce((sum, { a, x }) => sum + a * x, 0);
  if (terms.length > 4) shown.push(`${rounded(rest)} (${terms.length - 4} more)`);
  byId("sum-feature").textContent =
    `z${subscript(j + 1)} = ${shown.join(" + ")}${off ? ", but the head is off:" : ""} = ${rounded(z[j])}`;
}
const subscript = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);

// The rows h·K … of Wᴼ turn z of head h into its share of the output.
function drawHeads(t, K) {
  const concat = value(`${path()}.concat`);
  const w = model.weights[`${path()}.w_o`];
  const b = model.weights[`${path()}.b_o`];
  const shares = Array.from({ length: model.heads }, (_, h) => {
    const z = new Matrix(1, K, concat.row(t).subarray(h * K, (h + 1) * K));
    return linear(z, new Matrix(K, w.columns, w.data.subarray(h * K * w.columns, (h + 1) * K * w.columns))).data;
  });
  const sum = value(`${path()}.out`).row(t);
  const largest = Math.max(...[...shares, sum].map(largestOf));
  byId("heads-title").textContent =
    `zₕ Wᴼₕ of every head: their sum${b ? " plus the bias" : ""} is the output of the layer`;
  const rows = shares.map((share, h) => {
    const line = tableRow(
      "td",
      heading(`head ${h + 1}`),
      rounded(length(share)),
      strip(share, `z Wᴼ of head ${h + 1}`, largest),
    );
    line.classList.toggle("on", h === state.head);
    return line;
  });
  if (b) rows.push(tableRow("td", heading("bias"), rounded(length(b.data)), strip(b.data, "bias", largest)));
  rows.push(tableRow("td", heading("sum"), rounded(length(sum)), strip(sum, "output of the layer", largest)));
  fill(byId("heads-table"), ["", "length", "z Wᴼ"], rows);
}

function listenToSum() {
  byId("feature").addEventListener("input", drawSum);
}
