// Numbers as people read them, numbers as colours, and what the views are built from.

const CONTROL = { "\n": "↵", "\t": "⇥", " ": "␣", "": "∅" };
const visible = (word) =>
  CONTROL[word] ?? word.replace(/[\0-\x1f\ud800-\udfff]/gu, (c) => CONTROL[c] ?? "\ufffd").replace(/^ /, "␣");

function percent(p) {
  if (p > 0.9995) return p === 1 ? "100 %" : "> 99.9 %";
  if (p > 0 && p < 0.001) return "< 0.1 %";
  return `${(100 * p).toFixed(p > 0.0995 && p < 0.99 ? 0 : 1)} %`;
}

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
  const high = Math.max(160, innerHeight - 500 * screen.unit);
  screen.room = { width: width - 8, height: high, largest: { w: 3.2, h: 1.4 } };
  if (screen.staged) screen.room = { width, height, largest: { w: 7, h: 3.6 } };
}
