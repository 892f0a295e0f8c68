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

// What the browser says of the screen, asked for before anything changes: an answer in between would lay out the page.
const screen = { unit: 1, width: 900, height: 768, staged: false, room: null };
function measure() {
  screen.unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  screen.staged = document.documentElement.classList.contains("stage");
  if (screen.staged) {
    const { clientWidth: width, clientHeight: height } = byId("equation");
    screen.room = { width, height, factors: innerHeight > 500 };
    return;
  }
  screen.width = byId("flow").clientWidth - 28 * screen.unit; // inside the step that is open
  screen.height = innerHeight;
}
