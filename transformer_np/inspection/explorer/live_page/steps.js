// The steps of the computation, in order: what each multiplies or maps, its formula, and what is behind one cell.
//
// A step is { id, label, title, formula, sign, rows, columns, factors, result, cell }
//   rows: the side whose words are the rows;  columns: "keys", "words" or undefined for features
//   factors, result: { symbol, get(values), gradient(backward) } of matrices
//   cell(i, j): the sum behind one cell, as text;  names: of the rows, if they are not the words of a side ("own")
//   axes: what rows and columns are;  hidden(i, j): whether a cell is crossed out;  glance: false for no small picture
//   panel: the controls that belong to it
// values: those of a run, or the gradients of a backward pass, which have the same names

const step = (id, label, title, formula, rows, result, cell, more = {}) =>
  ({ id, label, title, formula, rows, result, cell, sign: [], factors: [], ...more });

const group = (h) => Math.floor((h * (data.config.num_kv_heads ?? H)) / H);
const kept = (symbol, name) => values(symbol, (all) => all[name]);
const ofHead = (symbol, name, h, map) => values(symbol, (all) => all[name]?.[h], map);

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
  const gradient = ({ weights }) => weights[owner] && cut(weights[owner]);
  return { symbol, get: () => cut(model.weights[name]), gradient };
}
const biasOf = (name, cut = (matrix) => matrix) => model.weights[name] && (() => cut(model.weights[name]));
function values(symbol, get, map = (matrix) => matrix) {
  const found = (all) => (get(all) ? map(get(all)) : undefined);
  return { symbol, get: found, gradient: ({ gradients }) => found(gradients) };
}
// A matrix that has no gradient of its own
const computed = (symbol, get) => ({ symbol, get, gradient: () => undefined });

const inside = (x) => rounded(x).replace(/^−.*/, "($&)"); // within a sum or a product
const subscript = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
const cellName = (symbol, i, j) => `${symbol.includes(" ") ? `(${symbol})` : symbol}${subscript(i + 1)},${subscript(j + 1)}`;

// Σ of products in the order in which the grid reads; of a long sum, the end is one number.
function sumText(left, right, extra = []) {
  const all = Array.from(left, (a, k) => [a, right[k]]);
  const terms = all.length > 8 ? all.filter(([a, b]) => a !== 0 && b !== 0) : all; // many units are off
  const most = terms.length > 6 ? 5 : 6;
  const shown = terms.slice(0, most).map(([a, b]) => `${rounded(a)} · ${inside(b)}`);
  const rest = terms.slice(most).reduce((sum, [a, b]) => sum + a * b, 0);
  if (terms.length > most) shown.push(`${rounded(rest)} (${terms.length - most} more)`);
  return [...(shown.length ? shown : ["0"]), ...extra].join(" + ").replaceAll("+ −", "− ");
}

// A number that is computed, and what a change makes of it
const becomes = (computed, now) => (Math.abs(computed - now) < 1e-5 * (1 + Math.abs(now)) ? rounded(now) : `${rounded(computed)}, and your change makes it ${rounded(now)}`);

// left · right (+ bias) = result, for the matrices of a run
function product(id, label, title, formula, { left, right, result, bias, divide = 1, note = "", ...more }) {
  const cell = (i, j, values) => {
    const [a, b, y] = [left.get(values), right.get(values), result.get(values)];
    const sum = sumText(a.row(i), b.transposed.row(j), bias ? [`bias ${inside(bias().data[j])}`] : []);
    const over = divide === 1 ? sum : `(${sum}) / ${rounded(divide)}`;
    const exact = (dot(a.row(i), b.transposed.row(j)) + (bias?.().data[j] ?? 0)) / divide;
    return `${cellName(result.symbol, i, j)} = ${over} = ${note ? rounded(y.at(i, j)) + note : becomes(exact, y.at(i, j))}`;
  };
  const sign = ["·", divide === 1 ? "=" : `/ ${rounded(divide)} =`];
  return step(id, label, title, formula, more.rows, result, cell, { sign, factors: [left, right], ...more });
}
