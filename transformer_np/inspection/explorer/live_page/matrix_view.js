// A matrix as a picture: every number a colour, and written out where there is room. It is drawn on a canvas, because
// a table with a thousand cells takes longer to draw than the model to compute.

// The size of a cell in CSS pixels, so that the matrix fills its room and no more. room.over: what words, axes and legend
// take, once that is known
function cellSize(matrix, names, { width, height, over, largest }) {
  const rem = 16 * screen.unit;
  const longest = (list, most = 11) => rem * Math.min(most, 0.55 * Math.max(...list.map((word) => [...word].length)) + 0.6);
  const spare = width - (matrix.columns * largest.w + 1.8) * rem; // beside few columns there is room for long names
  const side = names.rows ? Math.max(Math.min(longest(names.rows), 0.3 * width), Math.min(longest(names.rows, 20), spare)) : 0;
  const w = Math.min((width - (over?.width ?? side + 1.8 * rem)) / matrix.columns, largest.w * rem);
  const top = !names.columns || w < 14 ? 0 : longest(names.columns) > w ? longest(names.columns) : 1.4 * rem;
  const h = Math.min((height - (over?.height ?? top + 4.6 * rem)) / matrix.rows, largest.h * rem);
  const font = Math.min(0.62 * h, w / 3.2, 1.4 * rem);
  return { w: Math.max(0.4, w), h: Math.max(0.4, h), font, written: font >= 8.5, side };
}

// A figure of a matrix.
//   symbol, names: { rows, columns }: the words beside it, or undefined;  picked: { row, column }, either may be undefined
//   axes: { rows, columns }: what they are, with a legend of the colours
//   pick(row, column): what a click does, if it does anything;  hidden(i, j): whether a mask hides the cell
//   signed: two colours, else one for weights in 0 … 1;  small: at most so many pixels high, as a small picture
function matrixFigure(key, given) {
  const { symbol, matrix, names = {}, axes, picked = {}, pick, hidden = () => false, signed = true } = given;
  const { about, small, crossed = "hidden" } = given;
  const size = small
    ? { w: Math.min(20, (2.2 * small) / matrix.columns), h: Math.min(16, small / matrix.rows), font: 0, written: false }
    : cellSize(matrix, names, screen.room);
  const label = `${about ?? symbol}, ${matrix.rows} × ${matrix.columns}`;
  const canvas = element("canvas", { class: "matrix" });
  const caption = element("figcaption", {}, symbol, " ", element("small", {}, `${matrix.rows} × ${matrix.columns}`));
  const columns = names.columns && size.w >= 14;
  const grid = element("div", { class: "grid" });
  if (axes) grid.append(element("span", { class: "axis", "aria-hidden": "true" }, axes.rows));
  if (names.rows && size.h >= 9 && !small) grid.append(rowHeads(key, names.rows, size, picked.row));
  const drawn = element("div", {}, canvas);
  if (columns) drawn.prepend(columnHeads(key, names.columns, size, picked.column));
  if (axes) drawn.prepend(element("div", { class: "axis", "aria-hidden": "true" }, axes.columns));
  grid.append(drawn);
  paintCells(canvas, matrix, size, { picked, hidden, signed });
  const named = (i, j) => {
    const word = (list, axis, n) => (list ? `${axis ?? ""} ${list[n]}, ` : "");
    return `${word(names.rows, axes?.rows, i)}${word(names.columns, axes?.columns, j)}row ${i + 1}, column ${j + 1}: ${hidden(i, j) ? "hidden" : precise(matrix.at(i, j))}`;
  };
  const spot = (event) => {
    const box = canvas.getBoundingClientRect();
    const at = (offset, length, count) => Math.max(0, Math.min(count - 1, Math.floor((offset / length) * count)));
    return [
      at(event.clientY - box.top, box.height, matrix.rows),
      at(event.clientX - box.left, box.width, matrix.columns),
    ];
  };
  canvas.addEventListener("pointermove", (event) => readOut(event, named(...spot(event))));
  canvas.addEventListener("pointerleave", () => (byId("readout").hidden = true));
  if (pick) {
    const here = `row ${(picked.row ?? 0) + 1}, column ${(picked.column ?? 0) + 1}`;
    Object.entries({
      tabindex: 0,
      role: "application",
      "data-key": key,
      "aria-roledescription": "matrix",
      "aria-label": `${label}${axes ? `, rows: ${axes.rows}, columns: ${axes.columns || "numbers"}` : ""}; ${here}; arrow keys move`,
    }).forEach(([name, text]) => canvas.setAttribute(name, text));
    canvas.classList.add("live");
    canvas.addEventListener("click", (event) => pick(...spot(event)));
    canvas.addEventListener("keydown", (event) => {
      const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!moves) return;
      event.preventDefault();
      const within = (n, count) => Math.max(0, Math.min(count - 1, n));
      pick(within((picked.row ?? 0) + moves[0], matrix.rows), within((picked.column ?? 0) + moves[1], matrix.columns));
    });
  } else {
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", label);
  }
  canvas.style.setProperty("view-transition-name", `m${[...symbol].map((c) => c.codePointAt(0)).join("-")}`);
  const figure = element("figure", {}, caption, grid);
  if (axes) {
    drawnLast = { symbol, matrix, names, axes, picked, hidden, crossed, signed };
    figure.append(legend(drawnLast));
  }
  return figure;
}

function rowHeads(key, words, size, picked) {
  const list = headsOf(`${key} rows`, words, picked);
  list.className = "row-heads";
  list.style.setProperty("--h", `${size.h}px`);
  list.style.setProperty("--side", `${size.side}px`);
  return list;
}

// The list of words beside a matrix, or above it. It is the same one each time the matrix is drawn, and a word that is
// there already stays: hundreds of new elements take longer than all computation.
const lists = new Map();
function headsOf(key, words, picked) {
  const list = lists.get(key) ?? element("div", { "aria-hidden": "true" });
  lists.set(key, list);
  while (list.childElementCount > words.length) list.lastChild.remove();
  words.forEach((word, i) => {
    const head = list.children[i] ?? list.appendChild(element("span", {}, isolated("")));
    update(head.firstChild, { textContent: word });
    update(head, { className: i === picked ? "on" : "" });
  });
  return list;
}

function columnHeads(key, words, size, picked) {
  const turned = words.some((word) => word.length * 8 * screen.unit > size.w);
  const list = headsOf(`${key} columns`, words, picked);
  list.className = `column-heads${turned ? " turned" : ""}`;
  list.style.setProperty("--w", `${size.w}px`);
  return list;
}

const isLight = (rgb) => dot([0.21, 0.72, 0.07], rgb.map((part) => (part / 255) ** 2.2)) > 0.18;

function paintCells(canvas, matrix, { w, h, font, written }, { picked, hidden, signed }) {
  const [width, height, ratio] = [matrix.columns * w, matrix.rows * h, Math.min(2, devicePixelRatio || 1)];
  Object.assign(canvas, {
    width: Math.max(1, Math.round(width * ratio)),
    height: Math.max(1, Math.round(height * ratio)),
  });
  canvas.style.setProperty("width", `${width}px`);
  canvas.style.setProperty("height", `${height}px`);
  const draw = canvas.getContext("2d");
  draw.scale(ratio, ratio);
  const largest = signed ? largestOf(matrix.data) : 1;
  draw.font = `${font}px system-ui, sans-serif`;
  Object.assign(draw, { textAlign: "center", textBaseline: "middle" });
  const small = largest > 0 && largest < 0.05;
  if (small) draw.font = `${0.8 * font}px system-ui, sans-serif`; // −1e−3 is wide
  const gap = written ? 1 : 0;
  if (!written) {
    const pixels = canvasOf("matrix", {}); // one for each number, enlarged: much faster than a rectangle for each
    paint(pixels, matrix, { signed, largest, hidden });
    draw.imageSmoothingEnabled = Math.min(w, h) * ratio < 1;
    draw.drawImage(pixels, 0, 0, width, height);
  }
  for (let i = 0; written && i < matrix.rows; i++) {
    for (let j = 0; j < matrix.columns; j++) {
      const x = matrix.at(i, j);
      const shade = largest > 0 && Number.isFinite(x) ? Math.min(1, Math.abs(x) / largest) : 0;
      const signs = [colours.cell, colours[x < 0 ? "below" : "above"]];
      const fill = hidden(i, j) ? colours.page : between(signed ? signs : VIRIDIS, shade);
      draw.fillStyle = `rgb(${fill.join()})`;
      draw.fillRect(j * w, i * h, w - gap, h - gap);
      if (hidden(i, j)) {
        draw.strokeStyle = `rgb(${colours.rule.join()})`;
        draw.lineWidth = 1;
        draw.beginPath();
        draw.moveTo(j * w, (i + 1) * h - gap);
        draw.lineTo((j + 1) * w - gap, i * h);
        draw.stroke();
      } else {
        draw.fillStyle = isLight(fill) ? "#000" : "#fff";
        draw.fillText(small ? x.toExponential(0).replaceAll("-", "−") : rounded(x), j * w + w / 2, i * h + h / 2 + 0.5);
      }
    }
  }
  const { row, column } = picked;
  const [here, there] = [row !== undefined && row < matrix.rows, column !== undefined];
  const frame = (line, name) => {
    const [x, y] = [there ? column * w : 0, here ? row * h : 0].map((edge) => edge + line / 2);
    const [wide, high] = [there ? w : width, here ? h : height].map((size) => size - line - (here && there ? gap : 0));
    Object.assign(draw, { strokeStyle: `rgb(${colours[name].join()})`, lineWidth: line });
    draw.strokeRect(x, y, wide, high);
  };
  if (!here && !there) return;
  frame(3, "page"); // seen on any colour
  frame(2, "text");
}

// What the pointer is on, beside it.
function readOut(event, text) {
  const readout = byId("readout");
  readout.textContent = text;
  readout.hidden = false;
  readout.style.setProperty(
    "left",
    `${Math.max(0, Math.min(event.clientX, document.documentElement.clientWidth - readout.offsetWidth - 4))}px`,
  );
  readout.style.setProperty("top", `${event.clientY + 16}px`);
}
