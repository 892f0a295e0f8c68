// The model view: every head of every layer as a small picture, one click away.

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

// heads: how many a layer has; about(kind): a remark beside its title; picture(kind, layer, head): the button, which is
// the same one each time
function drawAllHeads(container, kinds, heads, about, picture) {
  if (container.hasChildNodes()) {
    for (const kind of kinds)
      for (let at = 0; at < kind.layers * heads; at++) picture(kind, Math.floor(at / heads), at % heads);
    return;
  }
  const blocks = kinds.map((kind) => {
    const rows = Array.from({ length: kind.layers }, (_, layer) =>
      element(
        "div",
        { class: "layer", role: "group", "aria-label": `${kind.title}, layer ${layer + 1}` },
        element("span", { "aria-hidden": "true" }, `layer ${layer + 1}`),
        ...Array.from({ length: heads }, (_, head) => picture(kind, layer, head)),
      ),
    );
    rows.reverse(); // the data flow upwards, as in the paper's figure
    const title = element("h3", {}, capital(kind.title), " ", element("small", {}, about(kind)));
    return element("section", { class: "kind", "aria-label": kind.title }, title, ...rows);
  });
  container.classList.toggle("many", heads > 8 || kinds.some(({ layers }) => layers > 6));
  container.replaceChildren(...blocks);
}

// The button of one head. weights: { rows, columns, at(t, s) }; itself: whether queries and keys are the same words;
// open(): looks into the head, -> the element that shows it
function headPicture(weights, names, { pressed, itself, causal, condition = "" }, open) {
  const { kind, layer, head } = names;
  const canvas = canvasOf(`${kind} ${layer} ${head}`);
  paint(canvas, weights, { signed: false, causal });
  const remark = condition && `, ${condition}`;
  const label = `layer ${layer + 1}, head ${head + 1}${remark}: ${strongest(weights, names, itself)}`;
  const mark = { off: " off", changed: " *" }[condition] ?? "";
  const button = sameButton(
    `${kind} ${layer} ${head}`,
    "thumb",
    (event) => {
      const shown = open();
      const below = shown.getBoundingClientRect().top > 0.75 * innerHeight;
      if (event.detail && below) shown.scrollIntoView(); // of a pointer; the keyboard stays where it is
    },
    () => [canvas, element("span", {}, "")],
  );
  update(button, { title: label, ariaLabel: label, ariaPressed: String(pressed), tabIndex: pressed ? 0 : -1 });
  update(button.lastChild, { textContent: `${head + 1}${mark}` });
  return button;
}

// The pair of different words with the largest weight, in words.
function strongest(weights, { rowName, keyName }, itself) {
  let [best, at] = [-1, [0, 0]];
  weights.data.forEach((weight, i) => {
    if (weight <= best) return;
    const [t, s] = [Math.floor(i / weights.columns), i % weights.columns];
    if (!(itself && t === s)) [best, at] = [weight, [t, s]];
  });
  return best < 0 ? "only itself" : `${rowName(at[0])} looks at ${keyName(at[1])}, weight ${rounded(best)}`;
}
