// Numbers as people read them, numbers as colours, and what the views are built from.

const CONTROL = { "\n": "↵", "\t": "⇥", " ": "␣", "": "∅" };
const visible = (word) =>
  CONTROL[word] ?? word.replace(/[\0-\x1f\ud800-\udfff]/gu, (c) => CONTROL[c] ?? "\ufffd").replace(/^ /, "␣");

function rounded(value) {
  if (!Number.isFinite(value)) return value === -Infinity ? "−∞" : String(value);
  const size = Math.abs(value);
  const text = value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
  return /^-[0.]+$/.test(text) ? text.slice(1) : text.replace("-", "−");
}

// Gradients are often small: three digits wherever they stand.
function precise(value) {
  if (value === 0 || !Number.isFinite(value)) return rounded(value);
  const text = Math.abs(value) < 1e-3 ? value.toExponential(1) : value.toPrecision(2);
  return text.replaceAll("-", "−");
}

function percent(p) {
  if (p > 0.9995) return p === 1 ? "100 %" : "> 99.9 %";
  if (p > 0 && p < 0.001) return "< 0.1 %";
  return `${(100 * p).toFixed(p > 0.0995 && p < 0.99 ? 0 : 1)} %`;
}

const length = (row) => Math.sqrt(dot(row, row));
const largestOf = (row) => row.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

// --- colours ---------------------------------------------------------------------------------------------------------

const colours = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["pos", "neg", "weight", "cell", "page"]) {
    const hex = style.getPropertyValue(`--${name}`).trim();
    colours[name] = [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
  }
}

function tint(item, value, largest, signed = true) {
  item.style.setProperty("--tone", `var(--${signed ? (value < 0 ? "neg" : "pos") : "weight"})`);
  item.style.setProperty(
    "--p",
    `${largest > 0 && Number.isFinite(value) ? Math.min(100, (100 * Math.abs(value)) / largest) : 0}%`,
  );
}

// One pixel per number; signed numbers have two colours, weights one.
function paint(canvas, matrix, { signed = true, largest = 1, hidden = () => false }) {
  Object.assign(canvas, { width: matrix.columns, height: matrix.rows });
  const picture = new ImageData(matrix.columns, matrix.rows);
  for (let i = 0; i < matrix.rows; i++) {
    for (let j = 0; j < matrix.columns; j++) {
      const value = matrix.at(i, j);
      const share = largest > 0 && Number.isFinite(value) ? Math.min(1, Math.abs(value) / largest) : 0;
      const tone = colours[signed ? (value < 0 ? "neg" : "pos") : "weight"];
      const ground = colours[hidden(i, j) ? "page" : "cell"];
      const colour = ground.map((from, c) => from + share * (tone[c] - from));
      picture.data.set([...colour, 255], 4 * (i * matrix.columns + j));
    }
  }
  canvas.getContext("2d").putImageData(picture, 0, 0);
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

// --- elements --------------------------------------------------------------------------------------------------------

// Replace what is inside, and keep the keyboard's place: the new element with the same data-key gets the focus.
function redraw(container, ...children) {
  const key = container.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  container.replaceChildren(...children);
  if (key !== undefined) container.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

// A button of a group in which the arrow keys move; one of them, `here`, is reached with Tab.
function choice(key, { here = false, pressed, label, name = "" }, act, ...children) {
  const made = element("button", { type: "button", "data-key": key, tabindex: here ? 0 : -1 }, ...children);
  if (name) made.className = name;
  if (label) made.setAttribute("aria-label", label);
  if (pressed !== undefined) made.setAttribute("aria-pressed", String(pressed));
  made.addEventListener("click", act);
  return made;
}

// Move in a group of buttons with the arrow keys; columns(): how many are in a row, 1 for a list.
function moveWithArrows(container, columns = () => 1) {
  container.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.tagName !== "BUTTON") return;
    const all = [...container.querySelectorAll("button[data-key]")];
    const place = all.indexOf(event.target);
    const wide = columns(event.target);
    let goal;
    if (wide > 1 && ["ArrowUp", "ArrowDown"].includes(event.key))
      goal = place + (event.key === "ArrowUp" ? -wide : wide);
    else if (event.key.startsWith("Arrow") || ["Home", "End"].includes(event.key))
      goal = moved(place, all.length, event.key);
    if (all[goal] === undefined) return;
    event.preventDefault();
    all[goal].focus();
  });
}

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
