// Attention as lines between words and as colours of words, the legend of a matrix, and a picture of it as a file.

let drawnLast = null; // the result of the open step as it was drawn last

// What the colours of a matrix mean
function legend({ matrix, signed, hidden, crossed }) {
  const largest = signed ? largestOf(matrix.data) : 1;
  const ramp = element("canvas", { class: "ramp", role: "img", "aria-label": "from the smallest to the largest" });
  const least = signed && matrix.data.some((x) => x < 0) ? -1 : 0;
  const steps = Float64Array.from({ length: 64 }, (_, i) => least + (i / 63) * (1 - least));
  paint(ramp, new Matrix(1, 64, steps), { signed });
  const [low, high] = signed ? [least ? precise(-largest) : "0", precise(largest)] : ["0", "1"];
  const some = Array.from({ length: matrix.rows }, (_, i) => hidden(i, matrix.columns - 1)).some(Boolean);
  return element("p", { class: "legend" }, low, ramp, high, ...(some ? [element("span", { class: "crossed" }), crossed] : []));
}

// The attention weights of the heads that are to be drawn as lines, or null
function drawnAsLines({ id, words: own }) {
  if (id !== "weights" || own || !state.lines || state.show !== "value") return null;
  const all = value(`${path()}.weights`);
  return state.lines === "all" ? all : [all[state.head]];
}

const HEADS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a1fb8", "#b08500", "#4da6dd", "#c23b22"];
const svg = (tag, attributes, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, text] of Object.entries(attributes)) made.setAttribute(name, text);
  made.append(...children);
  return made;
};

const writtenAt = (x, y, text, more = {}) =>
  svg("text", { x, y, fill: "currentColor", "font-family": "system-ui, sans-serif", ...more }, text);

// Queries at the left, keys at the right, a line for each weight, as strong as it (Vig 2019)
function linesFigure(heads, rows, keys, row, pick) {
  const { room, staged, unit } = screen;
  const size = 15 * unit;
  const count = Math.max(rows.length, keys.length);
  const high = Math.max(12, Math.min(1.8 * size, staged ? (room.height - 30) / count : 24 * unit));
  const wide = Math.min(room.width, 44 * size);
  const [left, right, y] = [0.32 * wide, 0.68 * wide, (i) => (i + 0.6) * high];
  const text = (x, i, word, anchor, on) =>
    writtenAt(x, y(i) + size / 3, word, { "text-anchor": anchor, "font-size": Math.min(size, high), "font-weight": on ? 700 : 400 });
  const groups = rows.map((word, t) => {
    const lines = heads.flatMap((A, h) =>
      keys.flatMap((_, s) => {
        const stroke = HEADS[(heads.length > 1 ? h : 0) % HEADS.length];
        const strength = { stroke, "stroke-opacity": A.at(t, s).toFixed(3), "stroke-width": (high / 6).toFixed(1) };
        return A.at(t, s) < 0.01 ? [] : [svg("line", { x1: left + 6, y1: y(t), x2: right - 6, y2: y(s), ...strength })];
      }),
    );
    const group = svg("g", { class: `query${t === row ? " on" : ""}` }, text(left, t, word, "end", t === row), ...lines);
    group.addEventListener("click", () => pick(t));
    return group;
  });
  const [w, h] = [Math.round(wide), Math.round((count + 0.6) * high)];
  const label = "attention as lines from the queries at the left to the keys at the right";
  const drawing = svg("svg", { class: "lines", width: w, height: h, viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": label });
  drawing.append(...keys.map((word, s) => text(right, s, word, "start", false)), ...groups);
  drawnLast = { drawing };
  const names = heads.map((_, h) => {
    const square = { width: 12, height: 12 };
    return element("span", {}, svg("svg", square, svg("rect", { ...square, fill: HEADS[h % HEADS.length] })), ` head ${h + 1}`);
  });
  const caption = element("figcaption", {}, "A ", element("small", {}, "query → key; the line is as strong as the weight"));
  return element("figure", {}, caption, drawing, element("p", { class: "legend" }, ...(heads.length > 1 ? names : [])));
}

// The words that a word looks at, as the pointer is on it or it has the focus; or those that look at it
const LISTS = { source: "tokens", target: "steps" };
function colourWords(side, i) {
  const { kind, head } = state;
  const A = side === undefined || ![kind.rows, kind.keys].includes(side) ? null : value(`${path()}.weights`)[head];
  const looks = side === kind.rows;
  for (const [other, id] of Object.entries(LISTS))
    [...byId(id).querySelectorAll("button")].forEach((chip, s) => {
      const seen = A && other === (looks ? kind.keys : kind.rows) && (looks ? A.at(i, s) : A.at(s, i));
      chip.style.setProperty("--look", `${Math.round(100 * (seen || 0))}%`);
    });
}
function listenToWords() {
  for (const [side, id] of Object.entries(LISTS)) {
    const look = ({ target }) => target.closest("button") && colourWords(side, Number(target.closest("button").dataset.key.split(" ")[1]));
    for (const name of ["pointerover", "focusin"]) byId(id).addEventListener(name, look);
    for (const name of ["pointerleave", "focusout"]) byId(id).addEventListener(name, () => colourWords());
  }
  byId("save-svg").addEventListener("click", () => save("svg", `data:image/svg+xml,${encodeURIComponent(pictureText())}`));
  byId("save-png").addEventListener("click", savePng);
}

// --- a file ----------------------------------------------------------------------------------------------------------

// The picture of the open step as the text of an SVG file
function pictureText() {
  const { symbol, matrix, names, axes, hidden, signed, drawing } = drawnLast;
  const serial = (root) => new XMLSerializer().serializeToString(root);
  if (drawing) return serial(drawing);
  const written = matrix.columns <= 24 && matrix.rows <= 40;
  const [w, h, left, top] = [written ? 46 : 10, written ? 24 : 10, 110, 90];
  const largest = signed ? largestOf(matrix.data) : 1;
  const colour = (x) => {
    const shade = largest && Number.isFinite(x) ? Math.min(1, Math.abs(x) / largest) : 0;
    return between(signed ? [colours.cell, colours[x < 0 ? "below" : "above"]] : VIRIDIS, shade);
  };
  const label = (x, y, text, more) => writtenAt(x, y, text, { "text-anchor": "middle", fill: "#1a1d21", "font-size": 12, ...more });
  const size = { width: left + w * matrix.columns + 10, height: top + h * matrix.rows + 10 };
  const root = svg("svg", size, svg("rect", { ...size, fill: "#fff" }));
  const title = `${symbol}, ${matrix.rows} × ${matrix.columns}; rows: ${axes.rows}${axes.columns && `, columns: ${axes.columns}`}`;
  root.append(label(8, 18, title, { "text-anchor": "start", "font-weight": 700 }));
  for (let i = 0; i < matrix.rows; i++) {
    if (names.rows) root.append(label(left - 6, top + h * (i + 0.5) + 4, names.rows[i], { "text-anchor": "end" }));
    for (let j = 0; j < matrix.columns; j++) {
      const [x, y, number] = [left + j * w, top + i * h, matrix.at(i, j)];
      const rgb = hidden(i, j) ? [255, 255, 255] : colour(number);
      const stroke = hidden(i, j) ? "#c9ced6" : "none";
      root.append(svg("rect", { x, y, width: w - 1, height: h - 1, fill: `rgb(${rgb.join()})`, stroke }));
      const fill = isLight(rgb) ? "#000" : "#fff";
      if (written && !hidden(i, j)) root.append(label(x + w / 2, y + h / 2 + 4, rounded(number), { fill }));
    }
  }
  if (names.columns && written)
    names.columns.forEach((word, j) => {
      const transform = `translate(${left + (j + 0.6) * w},${top - 6}) rotate(-50)`;
      root.append(label(0, 0, word, { "text-anchor": "start", transform }));
    });
  return serial(root);
}
function savePng() {
  const picture = new Image();
  picture.addEventListener("load", () => {
    const canvas = element("canvas", { width: 2 * picture.width, height: 2 * picture.height });
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    save("png", canvas.toDataURL());
  });
  picture.src = `data:image/svg+xml,${encodeURIComponent(pictureText())}`;
}
function save(ending, href) {
  element("a", { href, download: `${data.kind.toLowerCase()}-${state.step}.${ending}` }).click();
}
