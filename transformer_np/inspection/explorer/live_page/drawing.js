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

// A row of numbers as a strip of colours; the pointer reads the numbers off it.
function strip(row, name, largest = largestOf(row)) {
  const [least, most, norm] = [Math.min(...row), Math.max(...row), length(row)].map(rounded);
  const label = `${name}: ${row.length} numbers from ${least} to ${most}, length ${norm}`;
  const canvas = element("canvas", { class: "strip", role: "img", "aria-label": label });
  paint(canvas, new Matrix(1, row.length, row), { largest });
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const i = Math.max(0, Math.min(row.length - 1, Math.floor(((event.clientX - box.left) / box.width) * row.length)));
    const readout = byId("readout");
    readout.textContent = `feature ${i + 1}: ${rounded(row[i])}`;
    readout.hidden = false;
    readout.style.setProperty("left", `${Math.min(event.clientX, document.documentElement.clientWidth - 150)}px`);
    readout.style.setProperty("top", `${event.clientY + 16}px`);
  });
  canvas.addEventListener("pointerleave", () => (byId("readout").hidden = true));
  return canvas;
}

// --- sizes -----------------------------------------------------------------------------------------------------------

// What the browser says of the screen, asked for before anything changes: an answer in between would lay out the page.
const screen = { unit: 1, width: 900, height: 768 };
function measure() {
  screen.unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  screen.width = byId("flow").clientWidth - 28 * screen.unit; // inside the step that is open
  screen.height = innerHeight;
}

// --- elements --------------------------------------------------------------------------------------------------------

function tableRow(tag, ...cells) {
  return element(
    "tr",
    {},
    ...cells.map((cell) =>
      cell instanceof HTMLElement && /^T[HD]$/.test(cell.tagName) ? cell : element(tag, {}, cell),
    ),
  );
}
const heading = (text, scope = "row") => element("th", { scope }, text);

function fill(table, columns, rows) {
  redraw(
    table,
    element("thead", {}, tableRow("th", ...columns.map((text) => heading(text, "col")))),
    element("tbody", {}, ...rows),
  );
}
