// The attention explorer: what is chosen, and how it is drawn.

const MEAN = -1;
const NAMES = {
  weight: "weight A",
  score: "score S",
  dweight: "gradient ∂L/∂A",
  dscore: "gradient ∂L/∂S",
};
const MATRICES = Object.keys(NAMES);

// What is chosen stays; where the pointer is (over) is shown instead as long as it is there.
const state = { kind: data.start, layer: 0, head: 0, show: "weight", row: 0, column: 0 };
Object.assign(state, { overRow: null, overColumn: null });

// --- numbers -----------------------------------------------------------------------------------------------------

const decoded = new Map();
function stored(name, of = kind()) {
  const text = of.arrays[name];
  if (!decoded.has(text)) decoded.set(text, new Float32Array(bytesOf(text).buffer));
  return decoded.get(text);
}
const kind = () => data.kinds[state.kind];
const queries = () => kind().queries.length;
const keys = () => kind().keys.length;

function ofHead(name, size, head) {
  const start = (state.layer * kind().heads + head) * size;
  return stored(name).subarray(start, start + size);
}
function matrix(name) {
  const size = queries() * keys();
  if (state.head !== MEAN) return ofHead(name, size, state.head);
  const mean = new Float64Array(size);
  for (let head = 0; head < kind().heads; head++) {
    const values = ofHead(name, size, head);
    for (let i = 0; i < size; i++) mean[i] += values[i] / kind().heads;
  }
  return mean;
}
function vector(name, position) {
  const K = kind().features;
  const rows = name === "q" || name === "g" ? queries() : keys();
  return ofHead(name, rows * K, state.head).subarray(position * K, (position + 1) * K);
}
const hidden = (t, s, of = kind()) => of.hidden[t][s] === "1";

// A row is named after the word that it chooses: what it predicts, where the model predicts a next word.
const rowName = (t, of = kind()) => (of.next ? `→ ${of.next[t]}` : of.queries[t]);

const rowTitle = (t) => (kind().next ? rowName(t) : quoted(rowName(t)));

// All digits of a number, where the page shows how it is computed.
function written(value) {
  if (!Number.isFinite(value)) return value === -Infinity ? "−∞" : String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size < 1e-4 || size >= 1e5 ? value.toExponential(3) : value.toPrecision(4);
  return text.replaceAll("-", "−");
}

// --- elements ----------------------------------------------------------------------------------------------------

const view = { queries: [], keys: [], cells: [], rowHeads: [], columnHeads: [], rows: [] };

function build() {
  const chosen = kind();
  options(byId("kind"), data.kinds.map((each, i) => [i, each.title]), state.kind);
  options(byId("layer"), Array.from({ length: chosen.layers }, (_, i) => [i, String(i + 1)]), state.layer);
  const heads = Array.from({ length: chosen.heads }, (_, i) => [i, String(i + 1)]);
  options(byId("head"), [...heads, [MEAN, "mean of heads"]], state.head);
  buildWords(chosen);
  buildMap(chosen);
}

function drawModel() {
  drawAllHeads(byId("model"), data.kinds, kind().heads, ({ about }) => about, thumbnail);
}

function thumbnail(of, layer, head) {
  const [rows, columns] = [of.queries.length, of.keys.length];
  const start = (layer * of.heads + head) * rows * columns;
  const values = stored("weight", of);
  const weights = { rows, columns, at: (t, s) => values[start + t * columns + s] };
  const layerHere = of === kind() && layer === state.layer;
  return headPicture(
    weights,
    { kind: of.name, layer, head, rowName: (t) => rowName(t, of), keyName: (s) => of.keys[s] },
    {
      pressed: layerHere && head === state.head,
      here: layerHere && head === Math.max(0, state.head),
      itself: of.name !== "cross",
      hidden: (t, s) => hidden(t, s, of),
    },
    () => {
      if (of !== kind()) chooseKind(data.kinds.indexOf(of));
      Object.assign(state, { layer, head });
      build();
      draw();
      return byId("inside-title");
    },
  );
}

function buildWords(chosen) {
  view.queries = chosen.queries.map((word, t) => {
    const button = element("button", { type: "button", class: "word" }, isolated(word));
    if (chosen.next) button.append(element("small", {}, "→ ", isolated(chosen.next[t])));
    listen(button, () => over(t, null), () => choose(t, null));
    return button;
  });
  view.keys = chosen.keys.map((word, s) => {
    const button = element("button", { type: "button", class: "word" }, isolated(word), element("span", { class: "value" }));
    listen(button, () => over(null, s), () => choose(null, s));
    return button;
  });
  byId("queries").replaceChildren(...view.queries);
  byId("keys").replaceChildren(...view.keys);
}

function buildMap(chosen) {
  view.columnHeads = chosen.keys.map((word) => element("th", { scope: "col", title: word }, isolated(word)));
  const rowNames = chosen.queries.map((_, t) => rowName(t));
  view.rowHeads = rowNames.map((name) => element("th", { scope: "row", title: name }, isolated(name)));
  view.cells = chosen.queries.map((_, t) =>
    chosen.keys.map((_, s) => {
      const cell = element("td", { role: "gridcell" });
      if (hidden(t, s)) cell.classList.add("hidden");
      listen(cell, () => over(t, s), () => choose(t, s));
      return cell;
    }),
  );
  view.rows = view.cells.map((cells, t) => element("tr", {}, view.rowHeads[t], ...cells));
  const head = element("thead", {}, element("tr", {}, element("th", { scope: "col" }), ...view.columnHeads));
  byId("map").classList.toggle("many", Math.max(queries(), keys()) > 12);
  byId("map").replaceChildren(head, element("tbody", {}, ...view.rows));
}

function listen(item, enter, take) {
  item.addEventListener("pointerenter", (event) => event.pointerType !== "touch" && enter());
  item.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && over(null, null));
  item.addEventListener("focus", take);
  item.addEventListener("click", take);
}
function over(row, column) {
  state.overRow = row;
  state.overColumn = column;
  paintChoice();
}
function choose(row, column) {
  state.row = row ?? state.row;
  state.column = column ?? state.column;
  paintChoice();
}
const row = () => state.overRow ?? state.row;
const column = () => state.overColumn ?? state.column;

// --- drawing -----------------------------------------------------------------------------------------------------

let shown, largest, signed;

function draw() {
  shown = matrix(state.show);
  signed = state.show !== "weight";
  largest = 1;
  if (signed) {
    largest = 0;
    shown.forEach((value, i) => {
      const seen = !hidden(Math.floor(i / keys()), i % keys());
      if (seen && Number.isFinite(value)) largest = Math.max(largest, Math.abs(value));
    });
  }
  view.cells.forEach((cells, t) =>
    cells.forEach((cell, s) => {
      tint(cell, valueAt(t, s));
      const value = hidden(t, s) ? "hidden by the mask" : short(valueAt(t, s));
      cell.setAttribute("aria-label", `${rowName(t)} looks at ${kind().keys[s]}: ${NAMES[state.show]} ${value}`);
    }),
  );
  const head = state.head === MEAN ? "mean of the heads" : `head ${state.head + 1}`;
  byId("inside-title").textContent = `${capital(kind().title)}, layer ${state.layer + 1}, ${head}`;
  drawModel();
  paintScale();
  paintChoice();
}

const short = (value) => (state.show.startsWith("d") ? precise : rounded)(value);
const valueAt = (t, s) => shown[t * keys() + s];
const strength = (value) => (largest > 0 && Number.isFinite(value) ? Math.min(1, Math.abs(value) / largest) : 0);
const tone = (value) => (signed ? (value < 0 ? "neg" : "pos") : "weight");
function tint(item, value, share = strength(value)) {
  item.style.setProperty("--tone", `var(--${tone(value)})`);
  item.style.setProperty("--p", `${(100 * share).toFixed(2)}%`);
}

function paintScale() {
  const swatch = (name) => element("span", { class: `swatch ${name}` });
  const parts = signed
    ? [swatch("pos"), `positive${meaning()} `, swatch("neg"), `negative; full colour at ±${short(largest)}.`]
    : [swatch("weight"), "full colour is weight 1. Each row adds up to 1."];
  if (kind().hidden.some((line) => line.includes("1"))) parts.push(" ", swatch("hidden"), "hidden by the mask.");
  byId("scale").replaceChildren(...parts);
}
const meaning = () =>
  ({ score: ",", dweight: ": more weight here raises the loss,", dscore: ": a higher score here raises the loss," })[state.show];

function paintChoice() {
  const t = row();
  const s = column();
  view.queries.forEach((button, i) => {
    button.classList.toggle("on", i === t);
    button.setAttribute("aria-pressed", String(i === state.row));
    button.tabIndex = i === state.row ? 0 : -1;
  });
  view.keys.forEach((button, i) => {
    const value = valueAt(t, i);
    const unseen = hidden(t, i);
    button.classList.toggle("on", i === s);
    button.classList.toggle("hidden", unseen);
    button.setAttribute("aria-pressed", String(i === state.column));
    button.tabIndex = i === state.column ? 0 : -1;
    button.lastChild.textContent = unseen ? "hidden" : short(value);
    tint(button, value);
  });
  view.rows.forEach((line, i) => line.classList.toggle("on", i === t));
  view.rowHeads.forEach((cell, i) => cell.classList.toggle("on", i === t));
  view.columnHeads.forEach((cell, i) => cell.classList.toggle("on", i === s));
  view.cells.forEach((cells, i) =>
    cells.forEach((cell, j) => {
      cell.classList.toggle("on", i === t && j === s);
      cell.tabIndex = i === state.row && j === state.column ? 0 : -1;
    }),
  );
  paintLines();
  paintSummary(t);
  paintPair(t, s);
}

function paintLines() {
  const svg = byId("lines");
  const top = svg.getBoundingClientRect().top;
  const width = svg.clientWidth;
  const middle = (button) => {
    const box = button.getBoundingClientRect();
    return box.top + box.height / 2 - top;
  };
  const starts = view.queries.map(middle);
  const ends = view.keys.map(middle);
  const lines = [];
  for (let t = 0; t < starts.length; t++) {
    const strong = t === row();
    for (let s = 0; s < ends.length; s++) {
      const share = strength(valueAt(t, s));
      if (hidden(t, s) || share < (strong ? 0.005 : 0.05)) continue;
      const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
      const place = { x1: 2, y1: starts[t], x2: width - 2, y2: ends[s] };
      for (const [name, value] of Object.entries(place)) line.setAttribute(name, value.toFixed(1));
      line.setAttribute("class", tone(valueAt(t, s)));
      line.setAttribute("stroke-width", (strong ? 1 + 6 * share : 1).toFixed(2));
      line.setAttribute("stroke-opacity", (strong ? 0.15 + 0.85 * share : 0.3 * share).toFixed(3));
      strong ? lines.push(line) : lines.unshift(line);
    }
  }
  svg.replaceChildren(...lines);
}

function paintSummary(t) {
  const gradient = state.show.startsWith("d");
  const size = (s) => (gradient ? Math.abs(valueAt(t, s)) : valueAt(t, s));
  const nothing = state.show === "weight" ? 0.005 : -Infinity; // smaller weights are written as 0.00
  const seen = kind().keys.map((_, s) => s).filter((s) => !hidden(t, s) && valueAt(t, s) >= nothing);
  const order = seen.sort((a, b) => size(b) - size(a)).slice(0, 3);
  const parts = [rowTitle(t)];
  if (gradient) parts.push(` has the steepest ${NAMES[state.show]} at `);
  else parts.push(state.show === "weight" ? " looks most at " : " has the highest scores with ");
  const most = order.map((s) => `${quoted(kind().keys[s])} ${short(valueAt(t, s))}`).join(", ");
  byId("summary").textContent = order.length ? parts.join("") + most + "." : `${parts[0]} sees no key.`;
}

function paintPair(t, s) {
  const at = t * keys() + s;
  const value = Object.fromEntries(MATRICES.map((name) => [name, matrix(name)[at]]));
  const one = state.head !== MEAN;
  const K = kind().features;
  const visible = kind().hidden[t].split("0").length - 1;
  const note = (text) => (one ? text : "mean over the heads");
  const score = written(value.score);
  byId("pair-title").textContent = `Query ${rowTitle(t)}, key ${quoted(kind().keys[s])}`;
  const facts = [
    hidden(t, s)
      ? ["score", "score S = q · k / √K", "−∞", `hidden by the mask; ${score} without it`]
      : ["score", "score S = q · k / √K", score, note(`K = ${K}`)],
    ["weight", "weight A = softmax of the row of S", written(value.weight), note(`keys visible in the row: ${visible}`)],
    ["dweight", "∂L/∂A = g · v", written(value.dweight), note("g = ∂L/∂(output of the head)")],
    ["dscore", "∂L/∂S = A (∂L/∂A − Σ A ∂L/∂A)", written(value.dscore), note("the sum runs over the row")],
  ];
  if (one) facts.unshift(["dot", "q · k", written(dot(vector("q", t), vector("k", s))), `sum over ${K} features`]);
  byId("facts").replaceChildren(
    ...facts.map(([id, name, number, remark]) => {
      const meaning = element("dd", { "data-fact": id }, element("span", {}, number), element("small", {}, remark));
      return element("div", {}, element("dt", {}, name), meaning);
    }),
  );
  byId("features-scroll").hidden = !one;
  byId("note").textContent = one
    ? "Feature by feature: the products of q and k add up to q · k; those of g and v add up to ∂L/∂A."
    : "These are means over the heads. Choose one head to see its q, k and v.";
  if (one) paintFeatures(vector("q", t), vector("k", s), vector("g", t), vector("v", s));
}

function paintFeatures(q, k, g, v) {
  const products = [q.map((x, i) => x * k[i]), g.map((x, i) => x * v[i])];
  const most = products.map((values) => Math.max(...values.map(Math.abs)));
  const names = ["", "q", "k", "q k", "v", "g", "g v"];
  const head = element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name || "#")));
  const rows = Array.from(q, (_, i) => {
    const cells = [q[i], k[i], products[0][i], v[i], g[i], products[1][i]].map((x, c) => {
      const cell = element("td", {}, written(x));
      if (c % 3 === 2) {
        const scale = most[c === 2 ? 0 : 1];
        cell.className = "bar";
        cell.style.setProperty("--tone", x < 0 ? "var(--neg)" : "var(--pos)");
        cell.style.setProperty("--p", `${scale > 0 ? (100 * Math.abs(x)) / scale : 0}%`);
      }
      return cell;
    });
    return element("tr", {}, element("th", { scope: "row" }, String(i + 1)), ...cells);
  });
  const sums = ["", "", written(dot(q, k)), "", "", written(dot(g, v))].map((text) => element("td", {}, text));
  const foot = element("tr", {}, element("th", { scope: "row" }, "sum"), ...sums);
  byId("features").replaceChildren(
    element("thead", {}, head),
    element("tbody", {}, ...rows),
    element("tfoot", {}, foot),
  );
}

// --- controls ----------------------------------------------------------------------------------------------------

function chooseKind(number) {
  Object.assign(state, { kind: number, row: 0, column: 0, overRow: null, overColumn: null });
  state.layer = Math.min(state.layer, kind().layers - 1);
  state.head = Math.min(state.head, kind().heads - 1);
}
byId("kind").addEventListener("change", (event) => {
  chooseKind(Number(event.target.value));
  build();
  draw();
});
for (const name of ["layer", "head"]) {
  byId(name).addEventListener("change", (event) => {
    state[name] = Number(event.target.value);
    draw();
  });
}
for (const radio of document.querySelectorAll("input[name=show]")) {
  radio.addEventListener("change", () => {
    state.show = radio.value;
    draw();
  });
}

byId("words").addEventListener("keydown", (event) => {
  const inQueries = view.queries.includes(event.target);
  if (event.altKey || event.ctrlKey || event.metaKey || !(inQueries || view.keys.includes(event.target))) return;
  const list = inQueries ? view.queries : view.keys;
  let goal;
  if (["ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) {
    goal = list[moved(list.indexOf(event.target), list.length, event.key)];
  } else if (event.key === "ArrowRight" && inQueries) goal = view.keys[state.column];
  else if (event.key === "ArrowLeft" && !inQueries) goal = view.queries[state.row];
  else return;
  event.preventDefault();
  goal.focus();
});
byId("map").addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  let t = state.row;
  let s = state.column;
  if (["ArrowUp", "ArrowDown"].includes(event.key)) t = moved(t, queries(), event.key);
  else if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) s = moved(s, keys(), event.key);
  else return;
  event.preventDefault();
  view.cells[t][s].focus();
});

moveWithArrows(byId("model"), () => kind().heads);
readColours();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  drawModel();
});
byId("about").textContent = data.about;
build();
draw();
if ("ResizeObserver" in window) new ResizeObserver(paintLines).observe(byId("words"));
