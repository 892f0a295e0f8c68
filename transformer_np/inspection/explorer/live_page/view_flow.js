// The diagram: the steps of the computation from the bottom to the top, and in its place the step that is open, with its
// matrices, the sum behind one cell, its formula and its shapes.

const SHOWN = {
  value: "value",
  before: "without your changes",
  difference: "what your changes add",
  gradient: "gradient ∂L/∂ of it",
};

function drawFlow() {
  const rows = flow();
  const { row: openRow, step: found } = openStep(rows);
  const open = state.worked ?? found;
  const key = byId("flow").contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const steps = rows.map((row) => row.steps.map((step) => stepButton(row, step, step === open)));
  const here = rows.indexOf(openRow) + 1;
  const plan = JSON.stringify([here, steps.map((some) => some.map((button) => button.dataset.key))]);
  if (byId("flow").dataset.plan !== plan) {
    const lines = rows.map(({ title }, i) => {
      const name = element("span", { class: "flow-title" }, title);
      return element("div", { class: "flow-row", role: "group", "aria-label": title }, name, ...steps[i]);
    });
    byId("flow-below").replaceChildren(...lines.slice(0, here));
    byId("flow-above").replaceChildren(...lines.slice(here));
    byId("flow").dataset.plan = plan;
  }
  drawStep(openRow, open);
  const { open: shown } = byId("step").dataset;
  if (shown !== undefined && shown !== open.id) byId("step").scrollIntoView({ block: "nearest" }); // not as the page opens
  byId("step").dataset.open = open.id;
  if (key !== undefined)
    byId("flow")
      .querySelector(`[data-key="${CSS.escape(key)}"]`)
      ?.focus({ preventScroll: true });
}

function stepButton(row, step, isOpen) {
  const key = `${row.kind?.name ?? row.title} ${step.id}`;
  const matrix = step.glance === false ? undefined : step.result.get(result.values);
  const canvas = canvasOf(`step ${key}`, { class: "glance" });
  if (matrix) {
    const isWeight = step.result.symbol === "A" || step.weights;
    const some = { rows: Math.min(12, matrix.rows), columns: Math.min(32, matrix.columns) };
    const shown = matrix.data.subarray((matrix.rows - some.rows) * matrix.columns);
    paint(canvas, matrix, { signed: !isWeight, largest: isWeight ? 1 : largestOf(shown), ...some });
  }
  const parts = () => [element("span", {}, step.label), ...(matrix ? [canvas] : [])];
  const button = sameButton(key, "step", () => openAt(row, step), parts);
  button.setAttribute("aria-controls", "step");
  update(button, { ariaExpanded: String(isOpen), title: step.title, tabIndex: isOpen ? 0 : -1 });
  update(button.firstChild, { textContent: step.label });
  button.classList.toggle("open", isOpen);
  button.classList.toggle("changed", stepIsChanged(row, step));
  return button;
}

function stepIsChanged(row, step) {
  const kind = row.kind;
  return state.changes.some((change) => {
    if (kind && change.kind === kind.name && [null, state.layer].includes(change.layer))
      return { head: "heads", uniform: "weights", key: "mask", score: "mask" }[change.type] === step.id;
    return change.name !== undefined && step.result && change.name === resultName(step);
  });
}
const NAMES = ["out", "ffn"];
function resultName(step) {
  if (!NAMES.includes(step.id)) return undefined;
  return step.id === "ffn" ? `${state.kind.block(state.layer)}.feed_forward.out` : `${path()}.out`;
}

function openAt(row, step) {
  state.worked = null;
  const chosen = row.kind && row.kind !== state.kind ? { kind: row.kind, head: 0 } : {};
  select({ ...chosen, step: step.id, column: 0 });
}

// --- the step that is open -------------------------------------------------------------------------------------------

function drawStep(row, step) {
  const named = row.kind && IN_HEAD.includes(step.id);
  const where = state.worked
    ? ""
    : /^(In|Out)put/.test(row.title)
      ? row.title
      : named ? nameOf(here()) : `${row.kind?.title ?? row.title.toLowerCase()}, layer ${state.layer + 1}`;
  byId("step-title").replaceChildren(step.title, " ", element("small", {}, where));
  const shape = [...step.factors, step.result].map(({ symbol, get }) => `${symbol} ${sizeOf(get(result.values))}`);
  const slope = state.show === "gradient" ? `∂L/∂${step.result.symbol}, where ` : "";
  byId("step-formula").replaceChildren(slope, element("strong", {}, step.formula), `   with ${shape.join(", ")}`);
  for (const name of ["training", "residual"]) byId(`panel-${name}`).hidden = step.panel !== name;
  if (step.panel === "training") drawTraining();
  else if (step.panel === "residual") drawResidual();
  drawShow(step);
  drawEquation(step);
  byId("controls").hidden = Boolean(state.worked);
  if (!state.worked) drawControls(row, step);
}
const sizeOf = (matrix) => (matrix ? `(${matrix.rows}, ${matrix.columns})` : "");

function drawShow(step) {
  if (step.words) state.show = "value";
  const changed = state.changes.length > 0 && unchanged !== result;
  if (!changed && ["before", "difference"].includes(state.show)) state.show = "value";
  for (const radio of document.querySelectorAll("input[name=show]")) {
    radio.checked = radio.value === state.show;
    radio.disabled =
      Boolean(step.words) ||
      (radio.value === "gradient" && !model.speaks) ||
      (["before", "difference"].includes(radio.value) && !changed);
  }
  byId("lines").parentElement.hidden = step.id !== "weights";
  byId("lines").value = state.lines;
  byId("show-note").textContent =
    state.show === "gradient"
      ? `L = ${precise(gradients().loss)}: mean of −ln p of the target words. Choose another target under “Loss”.`
      : "";
}

// The matrix of a factor or a result as it is asked for: its value, that before the changes, the difference or the gradient.
function shownMatrix(part) {
  if (state.show === "gradient") return part.gradient(gradients()) ?? null;
  const now = part.get(result.values);
  if (state.show === "value") return now;
  const before = part.get(teacherForced(result, []));
  if (state.show === "before") return before;
  const minus = (a, b) => (a === b ? 0 : a - b); // also −∞ on both sides
  return new Matrix(
    now.rows,
    now.columns,
    now.data.map((x, i) => minus(x, before.data[i])),
  );
}

// The chosen row of a step's matrix
const rowIn = (step, matrix) => Math.min(state.place[step.rows], matrix.rows - 1);
const columnNames = ({ columns }) => (columns === "keys" ? words(state.kind.keys) : columns);
const rowNames = ({ names, words: own, rows }) => (typeof names === "function" ? names() : (names ?? own ?? words(rows)));

// The result of the step, and above it small pictures of what it is computed from. over: what is around the cells of the
// result, once that is known
function drawEquation(step, over) {
  const { factors, result: y, sign, rows: side } = step;
  const rows = rowNames(step);
  const shape = y.get(result.values);
  const row = rowIn(step, shape);
  const column = (state.column = Math.min(state.column, shape.columns - 1));
  const keys = columnNames(step);
  const [yAxis, xAxis] = step.axes ?? ["position", "feature"];
  const isProduct = sign[0] === "·";
  const scores = step.words ? undefined : value(`${path()}.scores`)[state.head];
  const masked = (i, j) => scores.at(i, j) === -Infinity;
  const pick = (i, j) => select({ [side]: i, column: j });
  const asText =
    state.show === "gradient"
      ? gradientText(step, row, column)
      : step.cell(row, column, state.show === "before" ? teacherForced(result, []) : result.values);
  const note = state.show === "value" ? (step.note?.(row, column) ?? "") : "";
  byId("cell").replaceChildren(isolated(rows[row]), ...(keys ? [", ", isolated(keys[column])] : []), ": ", asText, note);
  const figureOf = (part, given) => {
    const matrix = shownMatrix(part);
    if (!matrix) return null;
    const isWeight = part.symbol === "A" || (step.weights && part === y);
    const shared = {
      symbol: state.show === "gradient" ? `∂L/∂${part.symbol}` : part.symbol,
      about: `${SHOWN[state.show]}: ${part.symbol}`,
      matrix,
      signed: !isWeight || ["gradient", "difference"].includes(state.show),
      hidden: scores && !part.raw && ["S", "A"].includes(part.symbol) ? masked : undefined,
    };
    return matrixFigure(`matrix ${part.symbol}`, { ...shared, ...given(matrix) });
  };
  const sameColumn = (matrix) => shape.columns === matrix.columns && !["→ softmax →", "→ norm →"].includes(sign[0]);
  const small = factors.flatMap((part, i) => {
    const figure = figureOf(part, (matrix) => ({
      small: Math.min(4.5 * 16 * screen.unit, innerWidth / 9),
      names: { rows: matrix.rows === rows.length && !(isProduct && i) ? rows : undefined },
      picked: isProduct ? (i ? { column } : { row }) : { row, column: sameColumn(matrix) ? column : undefined },
    }));
    const mark = sign[i] && state.show !== "gradient" ? [element("span", { class: "sign", "aria-hidden": "true" }, sign[i])] : [];
    return figure ? [figure, ...mark] : [];
  });
  byId("factors").replaceChildren(...small);
  measure();
  screen.room.over = over;
  const lines = drawnAsLines(step);
  const own = { pick, picked: { row, column }, names: { rows, columns: keys }, axes: { rows: yAxis, columns: xAxis } };
  const figure = lines
    ? linesFigure(lines, rows, keys, row, (i) => pick(i, column))
    : figureOf(y, () => (step.hidden ? { ...own, hidden: step.hidden, crossed: step.crossed } : own));
  redraw(byId("equation"), ...(figure ? [figure] : []));
  const cells = screen.staged && figure?.querySelector("canvas.live")?.getBoundingClientRect();
  if (!cells) return;
  const { width, height } = figure.getBoundingClientRect();
  const runsOut = width > screen.room.width + 1 || height > screen.room.height + 1; // words came with the larger cells
  if (over && (!runsOut || over.turn > 2)) return;
  const around = { width: width - cells.width, height: height - cells.height, turn: (over?.turn ?? 0) + 1 };
  for (const side of ["width", "height"]) around[side] = Math.max(around[side], over?.[side] ?? 0);
  drawEquation(step, around);
}

function gradientText(step, row, column) {
  const d = step.result.gradient(gradients());
  if (!d) return "no gradient is kept for this matrix.";
  const slope = d.at(row, column);
  const name = cellName(step.result.symbol, row, column);
  return `∂L/∂${name} = ${precise(slope)}: if ${name} were larger by 0.01, the loss would change by about ${precise(slope * 0.01)}.`;
}

function listenToFlow() {
  for (const radio of document.querySelectorAll("input[name=show]"))
    radio.addEventListener("change", () => select({ show: radio.value }));
  byId("lines").addEventListener("change", () => select({ lines: byId("lines").value }));
  moveWithArrows(byId("flow"));
}
