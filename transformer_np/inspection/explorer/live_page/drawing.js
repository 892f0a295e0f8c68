// Numbers as people read them, numbers as colours, and what the views are built from.

const CONTROL = { "\n": "↵", "\t": "⇥", " ": "␣", "": "∅" };
const visible = (word) =>
  CONTROL[word] ?? word.replace(/[\0-\x1f\ud800-\udfff]/gu, (c) => CONTROL[c] ?? "\ufffd").replace(/^ /, "␣");

function percent(p) {
  if (p > 0.9995) return p === 1 ? "100 %" : "> 99.9 %";
  if (p > 0 && p < 0.001) return "< 0.1 %";
  return `${(100 * p).toFixed(p > 0.0995 && p < 0.99 ? 0 : 1)} %`;
}
const isPercent = (p) => percent(p).replace(/^\d/, "= $&"); // = 12 %, but < 0.1 %

const length = (row) => Math.sqrt(dot(row, row));
// Of the finite numbers, by absolute value
function largestOf(numbers) {
  let most = 0;
  for (let i = 0; i < numbers.length; i++) {
    const size = Math.abs(numbers[i]);
    if (size > most && size < Infinity) most = size;
  }
  return most;
}

// --- colours ---------------------------------------------------------------------------------------------------------

// Weights from 0 to 1, as in the pictures: viridis, from dark to bright
const VIRIDIS = "440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725".split(" ").map((hex) => rgb(`#${hex}`));
const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["above", "below", "weight", "cell", "page", "rule", "text"])
    colours[name] = rgb(style.getPropertyValue(`--${name}`).trim());
  for (const name of ["above", "below"]) shades[name] = shadesOf([colours.cell, colours[name]]);
  shades.weight = shadesOf(VIRIDIS);
  [shades.page] = shadesOf([colours.page, colours.page]);
}
function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

// From the first colour to the last in steps, each as a pixel: red, green, blue and 255 in four bytes
const STEPS = 255;
const shades = {};
function shadesOf(path) {
  const pixels = new Uint8ClampedArray(4 * (STEPS + 1)).fill(255);
  for (let i = 0; i <= STEPS; i++) pixels.set(between(path, i / STEPS), 4 * i);
  return new Uint32Array(pixels.buffer);
}
// The colour at x in 0 … 1 of a path of colours
function between(path, x) {
  const at = x * (path.length - 1);
  const i = Math.min(Math.floor(at), path.length - 2);
  return path[i].map((from, c) => Math.round(from + (at - i) * (path[i + 1][c] - from)));
}

// One pixel per number of the last rows and the first columns; signed numbers have two colours, weights one. causal:
// whether what is right of the diagonal is hidden
function paint(canvas, matrix, { signed = true, largest = 1, hidden = null, causal = false, ...part }) {
  const { rows = matrix.rows, columns = matrix.columns } = part;
  const numbers = matrix.data;
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  const picture = new ImageData(columns, rows);
  const pixels = new Uint32Array(picture.data.buffer);
  const [above, below] = signed ? [shades.above, shades.below] : [shades.weight, shades.weight];
  const factor = largest > 0 ? STEPS / largest : 0;
  if (causal) pixels.fill(shades.page);
  for (let i = 0; i < rows; i++) {
    const row = matrix.rows - rows + i;
    const end = causal ? Math.min(columns, row + 1) : columns;
    for (let j = 0, at = i * columns, from = row * matrix.columns; j < end; j++, at++, from++) {
      const value = numbers[from];
      const step = (Math.abs(value) * factor + 0.5) | 0; // 0 for what is not finite
      pixels[at] = hidden !== null && hidden(row, j) ? shades.page : (value < 0 ? below : above)[step > STEPS ? STEPS : step];
    }
  }
  canvas.getContext("2d").putImageData(picture, 0, 0);
}

// A small canvas that is the same one each time it is drawn: to make one takes longer than to paint it.
const canvases = new Map();
function canvasOf(key, attributes) {
  if (!canvases.has(key)) canvases.set(key, element("canvas", { "aria-hidden": "true", ...attributes }));
  return canvases.get(key);
}

function tint(item, value, largest, signed = true) {
  item.style.setProperty("--tone", `var(--${signed ? (value < 0 ? "neg" : "pos") : "weight"})`);
  item.style.setProperty(
    "--p",
    `${largest > 0 && Number.isFinite(value) ? Math.min(100, (100 * Math.abs(value)) / largest) : 0}%`,
  );
}

// --- sizes -----------------------------------------------------------------------------------------------------------

// The room for the matrix of the open step, and the largest size of a cell, in rem
const screen = { unit: 1, staged: false, room: null };
function measure() {
  screen.unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  screen.staged = onStage();
  const { clientWidth: width, clientHeight: height } = byId("equation");
  const high = Math.max(300 * screen.unit, innerHeight - 500 * screen.unit);
  screen.room = { width: width - 8, height: high, largest: { w: 3.2, h: 1.4 } };
  if (screen.staged) screen.room = { width, height, largest: { w: 7, h: 3.6 } };
}
