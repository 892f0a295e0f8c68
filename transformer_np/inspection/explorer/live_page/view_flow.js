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
  if (byId("step").dataset.open !== open.id) byId("step").scrollIntoView({ block: "nearest" });
  byId("step").dataset.open = open.id;
  if (key !== undefined)
    byId("flow")
      .querySelector(`[data-key="${CSS.escape(key)}"]`)
      ?.focus({ preventScroll: true });
}

function stepButton(row, step, isOpen) {
  const key = `${row.kind?.name ?? row.title} ${step.id}`;
  const matrix = step.result?.get(result.values);
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
      return { head: "heads", uniform: "weights", key: "scores", score: "scores" }[change.type] === step.id;
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
  const named = row.kind && ["q", "k", "v", "scores", "weights", "heads"].includes(step.id);
  const where = state.worked
    ? ""
    : ({ Input: row.title, Output: "Output" }[row.title] ??
      (named ? nameOf(here()) : `${row.kind?.title ?? row.title.toLowerCase()}, layer ${state.layer + 1}`));
  byId("step-title").replaceChildren(step.title, " ", element("small", {}, where));
  const shape = [...step.factors, step.result]
    .filter(Boolean)
    .map(({ symbol, get }) => `${symbol} ${sizeOf(get(result.values))}`);
  byId("step-formula").replaceChildren(
    element("strong", {}, step.formula),
    shape.length ? `   with ${shape.join(", ")}` : "",
  );
  for (const name of ["training", "lens", "residual"]) byId(`panel-${name}`).hidden = step.panel !== name;
  byId("panel-matrices").hidden = Boolean(step.panel);
  byId("panel-units").hidden = !["hidden", "ffn"].includes(step.id);
  if (step.panel === "training") drawTraining();
  else if (step.panel === "lens") drawLens();
  else if (step.panel === "residual") drawResidual();
  else {
    drawShow(step);
    drawEquation(step);
    if (!byId("panel-units").hidden) drawUnits();
  }
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
  byId("numbers").checked = state.numbers;
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

function drawEquation(step) {
  const { factors, result: y, sign } = step;
  const side = step.rows;
  const rows = step.names ?? step.words ?? words(side);
  const shape = y.get(result.values);
  const row = Math.min(state.place[side], shape.rows - 1);
  state.column = Math.min(state.column, shape.columns - 1);
  const column = state.column;
  const keys =
    step.columns === "keys" ? words(state.kind.keys) : Array.isArray(step.columns) ? step.columns : undefined;
  const { width, unit } = screen;
  const room = width - 100 - 75 * (factors.length + 1); // without words and signs
  const needed = ({ columns }) => (columns <= WIDE ? 34 * unit * columns : 150);
  const sizes = factors.map((part) => part.get(result.values)).filter(Boolean);
  const narrow = width < 500; // one matrix below the other
  byId("equation").classList.toggle("narrow", narrow);
  const tight = !narrow && [...sizes, shape].reduce((sum, each) => sum + needed(each), 0) > room + 75; // result first
  const share = narrow ? width - 90 : Math.floor((width - 100) / (factors.length + 1)) - (factors.length ? 75 : 100);
  const rest = Math.max(75, Math.floor((room - needed(shape)) / factors.length));
  const parts = [];
  const isProduct = sign[0] === "·" || sign[0] === "softmax";
  [...factors, y].forEach((part, i) => {
    const isResult = i === factors.length;
    const matrix = shownMatrix(part);
    if (!matrix) return;
    const isRight = isProduct && i === 1 && !isResult;
    const names = {
      rows: isRight ? undefined : matrix.rows === rows.length ? rows : words(side),
      columns: isResult || part.symbol === "S" || part.symbol === "A" ? keys : undefined,
    };
    if (part.symbol === "A" && !isResult) names.columns = step.words ?? words(state.kind.keys);
    if (isRight && step.id === "scores") names.columns = keys;
    if (isRight && step.id === "heads") names.rows = step.words ?? words(state.kind.keys);
    if (i && names.rows === rows && !isResult) names.rows = undefined;
    const isWeight =
      state.show !== "gradient" && state.show !== "difference" && (part.symbol === "A" || (step.weights && isResult));
    const masked = !step.words && (part.symbol === "S" || part.symbol === "A");
    const score = masked && value(`${path()}.scores`)[state.head];
    const rowwise = !isProduct && !isResult;
    const picked =
      isResult || rowwise
        ? {
            row,
            column:
              isResult || (shape.columns === matrix.columns && sign[0] !== "→ softmax →" && sign[0] !== "→ norm →")
                ? column
                : undefined,
          }
        : isRight
          ? { column }
          : { row };
    parts.push(
      matrixFigure(`matrix ${part.symbol}`, {
        symbol: state.show === "gradient" ? `∂L/∂${part.symbol}` : part.symbol,
        about: `${SHOWN[state.show]}: ${part.symbol}`,
        matrix,
        names,
        picked,
        pick: isResult ? (i, j) => select({ [side]: i, column: j }) : undefined,
        hidden: score ? (i, j) => score.at(i, j) === -Infinity : undefined,
        signed: !isWeight,
        most: tight && !isResult ? Math.min(share, rest) : share,
        wide: tight && !isResult ? 0 : WIDE,
        all: state.numbers,
      }),
    );
    if (!isResult && sign[i] && state.show !== "gradient")
      parts.push(element("span", { class: "sign", "aria-hidden": "true" }, sign[i]));
  });
  redraw(byId("equation"), ...parts);
  const asText =
    state.show === "gradient"
      ? gradientText(step, row, column)
      : step.cell(row, column, state.show === "before" ? teacherForced(result, []) : result.values);
  byId("cell").replaceChildren(isolated(rows[row]), ...(keys ? [", ", isolated(keys[column])] : []), ": ", asText);
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
  byId("numbers").addEventListener("change", () => select({ numbers: byId("numbers").checked }));
  moveWithArrows(byId("flow"));
}
