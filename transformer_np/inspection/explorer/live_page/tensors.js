// Matrices and the functions of the model on them, in float64, each forward followed by its backward. A row is a token,
// and matrices multiply from the right: y = x W + b. The letters in the shapes: T queries, S keys, D d_model, H heads,
// K features per head. A backward takes dy, the gradient of the loss with respect to y, and what the forward had.

class Matrix {
  constructor(rows, columns, data = new Float64Array(rows * columns)) {
    Object.assign(this, { rows, columns, data });
  }
  at(i, j) {
    return this.data[i * this.columns + j];
  }
  row(i) {
    return this.data.subarray(i * this.columns, (i + 1) * this.columns);
  }
  map(f) {
    return new Matrix(this.rows, this.columns, this.data.map(f));
  }
  slice(from, to) {
    return new Matrix(to - from, this.columns, this.data.subarray(from * this.columns, to * this.columns));
  }
  get transposed() {
    const turned = new Matrix(this.columns, this.rows);
    for (let i = 0; i < this.rows; i++)
      for (let j = 0; j < this.columns; j++) turned.data[j * this.rows + i] = this.data[i * this.columns + j];
    return turned;
  }
}

// --- linear ----------------------------------------------------------------------------------------------------------

// y = x W + b: x (T, D), w (D, F), b (1, F) or undefined  ->  (T, F). Four rows of W at a time: y is stored less often.
function linear(x, w, b) {
  const [y, D, F, from] = [new Matrix(x.rows, w.columns), x.columns, w.columns, w.data];
  for (let i = 0; i < x.rows; i++) {
    const [out, row] = [y.row(i), x.row(i)];
    if (b) out.set(b.data);
    let k = 0;
    for (; k + 3 < D; k += 4) {
      const [x0, x1, x2, x3] = [row[k], row[k + 1], row[k + 2], row[k + 3]];
      if (x0 === 0 && x1 === 0 && x2 === 0 && x3 === 0) continue; // half of the units behind a ReLU are 0
      for (let j = 0, at = k * F; j < F; j++, at++)
        out[j] += x0 * from[at] + x1 * from[at + F] + x2 * from[at + 2 * F] + x3 * from[at + 3 * F];
    }
    for (; k < D; k++) for (let j = 0, at = k * F; j < F; j++, at++) out[j] += row[k] * from[at];
  }
  return y;
}

// y = x Eᵀ, the output projection that shares the table of the embedding: x (T, D), table (V, D)  ->  (T, V)
function tiedLinear(x, table) {
  const [y, D, V, from] = [new Matrix(x.rows, table.rows), x.columns, table.rows, table.data];
  for (let i = 0; i < x.rows; i++) {
    const [out, row] = [y.row(i), x.row(i)];
    for (let j = 0, at = 0; j < V; j++, at += D) {
      let sum = 0;
      for (let k = 0; k < D; k++) sum += row[k] * from[at + k];
      out[j] = sum;
    }
  }
  return y;
}

// dx = dy Wᵀ, dW = xᵀ dy, db = Σ dy over the rows
function linearBackward(dy, x, w) {
  const db = new Matrix(1, w.columns);
  for (let t = 0; t < x.rows; t++) addScaled(db.data, dy.row(t), 1);
  return { dx: tiedLinear(dy, w), dw: linear(x.transposed, dy), db };
}

// a += factor · b, in place
function addScaled(a, b, factor) {
  for (let i = 0; i < a.length; i++) a[i] += factor * b[i];
}

function add(a, b) {
  const sum = new Matrix(a.rows, a.columns, a.data.slice());
  addScaled(sum.data, b.data, 1);
  return sum;
}

// --- heads -----------------------------------------------------------------------------------------------------------

// Columns h·K … (h+1)·K − 1 are head h: (T, H·K)  ->  H matrices (T, K)
function splitHeads(x, H) {
  const K = x.columns / H;
  return Array.from({ length: H }, (_, h) => {
    const head = new Matrix(x.rows, K);
    for (let i = 0; i < x.rows; i++) head.row(i).set(x.row(i).subarray(h * K, (h + 1) * K));
    return head;
  });
}

// H matrices (T, K)  ->  (T, H·K)
function mergeHeads(heads) {
  const [{ rows, columns: K }] = heads;
  const x = new Matrix(rows, heads.length * K);
  heads.forEach((head, h) => {
    for (let i = 0; i < rows; i++) x.row(i).set(head.row(i), h * K);
  });
  return x;
}

// Turn each pair of features (i, i + K/2) of a query or key by its position times a frequency (Su et al. 2021).
// start: the position of the first row; direction −1 turns back, which is the backward
function rotary(x, frequencies, start, direction = 1) {
  const [y, half] = [new Matrix(x.rows, x.columns), x.columns / 2];
  for (let t = 0; t < x.rows; t++) {
    const [from, to] = [x.row(t), y.row(t)];
    for (let i = 0; i < half; i++) {
      const angle = direction * (start + t) * frequencies[i];
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
      to[i] = from[i] * cos - from[i + half] * sin;
      to[i + half] = from[i] * sin + from[i + half] * cos;
    }
  }
  return y;
}

// --- softmax ---------------------------------------------------------------------------------------------------------

// Weights that add up to 1; −∞ gets weight 0, and a row of nothing but −∞ stays all 0.
function softmax(row) {
  const largest = row.reduce((a, b) => Math.max(a, b), -Infinity);
  if (largest === -Infinity) return row.map(() => 0);
  const powers = row.map((value) => Math.exp(value - largest));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / total);
}

const byRows =
  (f) =>
  (x, ...others) => {
    const y = new Matrix(x.rows, x.columns);
    for (let i = 0; i < x.rows; i++) y.row(i).set(f(x.row(i), ...others.map((other) => other.row(i))));
    return y;
  };
const softmaxRows = byRows(softmax);

// ∂yᵢ/∂xⱼ = yᵢ (δᵢⱼ − yⱼ):    dx = y · (dy − Σ dy · y)
const softmaxBackwardRows = byRows((dy, y) => {
  const mean = dot(dy, y);
  return y.map((weight, i) => weight * (dy[i] - mean));
});

// --- norms -----------------------------------------------------------------------------------------------------------

// y = γ x̂ + β, x̂ = (x − μ) / √(σ² + ε)  ->  y, x̂ (T, D), 1/√(σ² + ε) (T, 1). RMSNorm (centred: false) leaves out μ.
function layerNorm(x, gamma, beta, eps, centred = true) {
  const [y, normal, inverse] = [new Matrix(x.rows, x.columns), new Matrix(x.rows, x.columns), new Matrix(x.rows, 1)];
  for (let i = 0; i < x.rows; i++) {
    const row = x.row(i);
    const mean = centred ? row.reduce((a, b) => a + b, 0) / row.length : 0;
    const shifted = row.map((value) => value - mean);
    inverse.data[i] = 1 / Math.sqrt(dot(shifted, shifted) / row.length + eps);
    normal.row(i).set(shifted.map((value) => value * inverse.data[i]));
    y.row(i).set(normal.row(i).map((value, j) => value * gamma.data[j] + (beta ? beta.data[j] : 0)));
  }
  return { y, normal, inverse };
}

// dx = (dx̂ − mean(dx̂) − x̂ · mean(dx̂ · x̂)) / √(σ² + ε), dx̂ = dy · γ; the first mean is that of the path through μ
function layerNormBackward(dy, normal, inverse, gamma, centred = true) {
  const [dx, dgamma, dbeta] = [new Matrix(dy.rows, dy.columns), new Matrix(1, dy.columns), new Matrix(1, dy.columns)];
  for (let i = 0; i < dy.rows; i++) {
    const [out, hat] = [dy.row(i), normal.row(i)];
    const dhat = out.map((value, j) => value * gamma.data[j]);
    const mean = centred ? dhat.reduce((a, b) => a + b, 0) / dhat.length : 0;
    const along = dot(dhat, hat) / dhat.length;
    dx.row(i).set(dhat.map((value, j) => (value - mean - hat[j] * along) * inverse.data[i]));
    for (let j = 0; j < out.length; j++) dgamma.data[j] += out[j] * hat[j];
    addScaled(dbeta.data, out, 1);
  }
  return { dx, dgamma, dbeta };
}

// --- activations -----------------------------------------------------------------------------------------------------

// The error function by its series 2/√π e^(−x²) Σ 2ⁿ x^(2n+1) / (2n+1)!!, whose terms all have the same sign.
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let [term, sum] = [x, x];
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

const ROOT = Math.sqrt(2 / Math.PI);
const gate = (x) => Math.tanh(ROOT * (x + 0.044715 * x ** 3));
const sigmoid = (x) => 1 / (1 + Math.exp(-x));

// Each with its derivative
const ACTIVATIONS = {
  relu: [(x) => Math.max(0, x), (x) => (x > 0 ? 1 : 0)],
  gelu: [
    (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
    (x) => (1 + erf(x / Math.SQRT2) + x * ROOT * Math.exp((-x * x) / 2)) / 2,
  ],
  gelu_tanh: [
    (x) => (x / 2) * (1 + gate(x)),
    (x) => (1 + gate(x) + x * (1 - gate(x) ** 2) * ROOT * (1 + 3 * 0.044715 * x * x)) / 2,
  ],
  silu: [(x) => x * sigmoid(x), (x) => sigmoid(x) * (1 + x * (1 - sigmoid(x)))],
};

// --- positions -------------------------------------------------------------------------------------------------------

// PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same
function sinusoid(position, feature, D) {
  const angle = position / 10000 ** ((feature - (feature % 2)) / D);
  return feature % 2 ? Math.cos(angle) : Math.sin(angle);
}
