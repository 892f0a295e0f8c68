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
