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

// The first `start` rows of a matrix, and others below. A matrix whose end is also that of what its memory holds grows in
// place: nothing is copied, and the shorter matrix still is what it was.
function extended(matrix, start, rows) {
  const { columns } = matrix;
  const [from, length] = [start * columns, (start + rows.rows) * columns];
  let { room } = matrix; // { numbers, used }
  if (room?.used !== from || room.numbers.length < length) {
    const old = matrix.data.subarray(0, from);
    room = { numbers: new Float64Array(2 * length), used: from };
    room.numbers.set(old);
  }
  room.numbers.set(rows.data, from);
  room.used = length;
  const all = new Matrix(start + rows.rows, columns, room.numbers.subarray(0, length));
  return Object.assign(all, { room });
}

// --- linear ----------------------------------------------------------------------------------------------------------

// y = x W + b: x (T, D), w (D, F), b (1, F) or undefined  ->  (T, F). Four rows of W and two of x at a time: each number
// that is read from memory serves several products.
function linear(x, w, b) {
  const [{ rows: T, columns: D, data: xs }, { columns: F, data: ws }] = [x, w];
  const y = new Matrix(T, F);
  const ys = y.data;
  for (let t = 0; b && t < T; t++) y.row(t).set(b.data);
  let k = 0;
  for (; k + 3 < D; k += 4) {
    let t = 0;
    for (; t + 1 < T; t += 2) {
      const [p, q] = [t * D + k, t * D + D + k];
      const [x0, x1, x2, x3] = [xs[p], xs[p + 1], xs[p + 2], xs[p + 3]];
      const [z0, z1, z2, z3] = [xs[q], xs[q + 1], xs[q + 2], xs[q + 3]];
      for (let j = 0, at = k * F, i = t * F; j < F; j++, at++, i++) {
        const [w0, w1, w2, w3] = [ws[at], ws[at + F], ws[at + 2 * F], ws[at + 3 * F]];
        ys[i] += x0 * w0 + x1 * w1 + x2 * w2 + x3 * w3;
        ys[i + F] += z0 * w0 + z1 * w1 + z2 * w2 + z3 * w3;
      }
    }
    if (t === T) continue;
    const p = t * D + k;
    const [x0, x1, x2, x3] = [xs[p], xs[p + 1], xs[p + 2], xs[p + 3]];
    for (let j = 0, at = k * F, i = t * F; j < F; j++, at++, i++)
      ys[i] += x0 * ws[at] + x1 * ws[at + F] + x2 * ws[at + 2 * F] + x3 * ws[at + 3 * F];
  }
  for (; k < D; k++)
    for (let t = 0; t < T; t++)
      for (let j = 0, at = k * F, i = t * F; j < F; j++, at++, i++) ys[i] += xs[t * D + k] * ws[at];
  return y;
}

// y = x Eᵀ, the output projection that shares the table of the embedding: x (T, D), table (V, D)  ->  (T, V). Four rows of
// the table at a time.
function tiedLinear(x, table) {
  const [{ rows: T, columns: D, data: xs }, { rows: V, data: es }] = [x, table];
  const y = new Matrix(T, V);
  const ys = y.data;
  for (let j = 0; j < V; j += 4) {
    const count = Math.min(4, V - j); // a row that is not there is read as the last one
    const [a, b, c, d] = [
      j * D,
      (j + Math.min(1, count - 1)) * D,
      (j + Math.min(2, count - 1)) * D,
      (j + count - 1) * D,
    ];
    for (let t = 0; t < T; t++) {
      let [s0, s1, s2, s3] = [0, 0, 0, 0];
      for (let k = 0, i = t * D; k < D; k++, i++) {
        const value = xs[i];
        s0 += value * es[a + k];
        s1 += value * es[b + k];
        s2 += value * es[c + k];
        s3 += value * es[d + k];
      }
      const at = t * V + j;
      ys[at] = s0;
      if (count > 1) ys[at + 1] = s1;
      if (count > 2) ys[at + 2] = s2;
      if (count > 3) ys[at + 3] = s3;
    }
  }
  return y;
}

// db = Σ dy over the rows: (T, F)  ->  (1, F). The others are dx = dy Wᵀ, which is tiedLinear, and dW = xᵀ dy.
function rowSum(dy) {
  const db = new Matrix(1, dy.columns);
  for (let t = 0; t < dy.rows; t++) addScaled(db.data, dy.row(t), 1);
  return db;
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
