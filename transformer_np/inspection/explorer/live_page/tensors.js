// Matrices and the functions of the model on them, in float64. A row is a token, and matrices multiply from the right:
// y = x W + b. The letters in the shapes: T queries, S keys, D d_model, H heads, K features per head.

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
}

// --- numbers in the page ---------------------------------------------------------------------------------------------

function halfToNumber(half) {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

// All numbers of a base64 text, little-endian, as float64.
function numbersOf(base64, format) {
  const { buffer } = bytesOf(base64);
  if (format === "float16") return Float64Array.from(new Uint16Array(buffer), halfToNumber);
  return Float64Array.from(new Float32Array(buffer));
}

// --- functions -------------------------------------------------------------------------------------------------------

// y = x W + b: x (T, D), w (D, F), b (1, F) or undefined  ->  (T, F)
function linear(x, w, b) {
  const y = new Matrix(x.rows, w.columns);
  for (let i = 0; i < x.rows; i++) {
    const out = y.row(i);
    if (b) out.set(b.data);
    for (let k = 0; k < x.columns; k++) {
      const factor = x.data[i * x.columns + k];
      if (factor === 0) continue; // half of the units behind a ReLU
      const start = k * w.columns;
      for (let j = 0; j < out.length; j++) out[j] += factor * w.data[start + j];
    }
  }
  return y;
}

// y = x Eᵀ, the output projection that shares the table of the embedding: x (T, D), table (V, D)  ->  (T, V)
function tiedLinear(x, table) {
  const y = new Matrix(x.rows, table.rows);
  for (let i = 0; i < x.rows; i++) {
    for (let j = 0; j < table.rows; j++) y.data[i * table.rows + j] = dot(x.row(i), table.row(j));
  }
  return y;
}

function add(a, b) {
  return new Matrix(
    a.rows,
    a.columns,
    a.data.map((value, i) => value + b.data[i]),
  );
}

// Columns h·K … (h+1)·K − 1 are head h: (T, D)  ->  H matrices (T, K)
function splitHeads(x, H) {
  const K = x.columns / H;
  return Array.from({ length: H }, (_, h) => {
    const head = new Matrix(x.rows, K);
    for (let i = 0; i < x.rows; i++) head.row(i).set(x.row(i).subarray(h * K, (h + 1) * K));
    return head;
  });
}

// H matrices (T, K)  ->  (T, D)
function mergeHeads(heads) {
  const [{ rows, columns: K }] = heads;
  const x = new Matrix(rows, heads.length * K);
  heads.forEach((head, h) => {
    for (let i = 0; i < rows; i++) x.row(i).set(head.row(i), h * K);
  });
  return x;
}

// Weights that add up to 1; −∞ gets weight 0, and a row of nothing but −∞ stays all 0.
function softmax(row) {
  const largest = row.reduce((a, b) => Math.max(a, b), -Infinity);
  if (largest === -Infinity) return row.map(() => 0);
  const powers = row.map((value) => Math.exp(value - largest));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / total);
}

function softmaxRows(x) {
  const y = new Matrix(x.rows, x.columns);
  for (let i = 0; i < x.rows; i++) y.row(i).set(softmax(x.row(i)));
  return y;
}

// y = γ x̂ + β, x̂ = (x − μ) / √(σ² + ε)  ->  y, x̂ (T, D), 1/√(σ² + ε) (T, 1)
function layerNorm(x, gamma, beta, eps) {
  const [y, normal, inverse] = [new Matrix(x.rows, x.columns), new Matrix(x.rows, x.columns), new Matrix(x.rows, 1)];
  for (let i = 0; i < x.rows; i++) {
    const row = x.row(i);
    const mean = row.reduce((a, b) => a + b, 0) / row.length;
    const centred = row.map((value) => value - mean);
    inverse.data[i] = 1 / Math.sqrt(dot(centred, centred) / row.length + eps);
    normal.row(i).set(centred.map((value) => value * inverse.data[i]));
    y.row(i).set(normal.row(i).map((value, j) => value * gamma.data[j] + (beta ? beta.data[j] : 0)));
  }
  return { y, normal, inverse };
}

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

const ACTIVATIONS = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => (x / 2) * (1 + erf(x / Math.SQRT2)),
  gelu_tanh: (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  silu: (x) => x / (1 + Math.exp(-x)),
};

// PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos of the same
function sinusoid(position, feature, D) {
  const angle = position / 10000 ** ((feature - (feature % 2)) / D);
  return feature % 2 ? Math.cos(angle) : Math.sin(angle);
}
