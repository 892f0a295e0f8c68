// The loss of the text that is shown, where its gradient flows, and one step of SGD.

const RATES = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1];
const training = { rate: null, trained: null, taken: [] }; // trained: the weights that came with the page

function drawTraining() {
  const { loss, targets: wanted, weights, gradients: found } = gradients();
  const t = scoredRow(place("target"));
  const id = wanted[t];
  const p = id === null ? null : softmax(value("output.out").row(t))[id];
  byId("loss-text").replaceChildren(
    ...(CLASSES ? ["Target"] : ["Target after ", isolated(quoted(words("target")[t]))]),
    id === null
      ? ": none. "
      : [": ", quoted(outcomeOf(id)), `, p = ${percent(p)}, −ln p = ${precise3(-Math.log(p))}. `].join(""),
    element("strong", {}, `L = ${precise3(loss)}`),
    CLASSES ? "." : `, the mean over ${wanted.filter((each) => each !== null).length} rows.`,
  );
  const square = Object.values(weights).reduce((sum, { data }) => sum + dot(data, data), 0);
  const fall = (rate) => rate * square; // to first order: L(w − η g) ≈ L − η ‖g‖²
  training.rate ??= RATES.filter((rate) => fall(rate) <= 0.2 * loss).at(-1) ?? RATES[0];
  options(
    byId("rate"),
    RATES.map((rate) => [rate, String(rate)]),
    training.rate,
  );
  byId("sgd-note").textContent =
    `‖∂L/∂w‖² = ${precise(square)}, so to first order the loss falls by η‖∂L/∂w‖² = ${precise(fall(training.rate))}.`;
  byId("sgd-undo").disabled = !training.trained;
  const history = [...training.taken.map(({ loss }) => loss), loss];
  byId("sgd-result").textContent = training.taken.length
    ? `L: ${history.map(precise3).join(" → ")}; the last step was to fall by ${precise(training.taken.at(-1).fall)} and fell by ${precise(history.at(-2) - loss)}.`
    : "";
  drawGradientFlow(found);
  drawMoved(weights);
}

// ‖∂L/∂x‖ of the residual stream after every sub-layer, from the loss down.
function drawGradientFlow(found) {
  const rows = [];
  for (const side of translates ? ["target", "source"] : ["target"]) {
    const all = stages(side);
    for (const { name, label } of all.filter(({ name, added }) => !added && found[name]).reverse()) {
      const before = all[all.findIndex((stage) => stage.name === name) - 1];
      rows.push({
        label: `${side === "source" ? "encoder " : ""}${before?.added ? `after ${before.label.slice(2)}` : label}`,
        size: length(found[name].data),
      });
    }
  }
  const most = Math.max(...rows.map(({ size }) => size));
  const lines = rows.map(({ label, size }) => {
    const bar = element("td", { class: "bar-cell" }, precise(size));
    tint(bar, size, most, false);
    return tableRow("td", heading(label), bar);
  });
  fill(byId("flow-table"), ["state", "‖∂L/∂x‖"], lines);
}

// The weights that the step moves most, relative to their length.
function drawMoved(weights) {
  const rows = Object.entries(weights).map(([name, gradient]) => {
    const size = length(model.weights[name].data);
    const moved = training.trained
      ? length(model.weights[name].data.map((w, i) => w - training.trained[name].data[i]))
      : 0;
    return { name, step: training.rate * length(gradient.data), size, moved };
  });
  rows.sort((a, b) => b.step / (b.size || 1) - a.step / (a.size || 1));
  const lines = rows
    .slice(0, 8)
    .map(({ name, step, size, moved }) =>
      tableRow("td", heading(name), precise(step), rounded(size), training.trained ? precise(moved) : "0"),
    );
  fill(byId("moved-table"), ["weights", "next step ‖η ∂L/∂w‖", "‖w‖", "moved so far"], lines);
}

function takeStep() {
  const { loss, weights } = gradients();
  const square = Object.values(weights).reduce((sum, { data }) => sum + dot(data, data), 0);
  training.trained ??= model.weights;
  training.taken.push({ loss, fall: training.rate * square });
  model.weights = descended(model, weights, training.rate);
  keepText();
  run();
}

// The text that is shown stays, so that its loss before and after can be compared.
function keepText() {
  state.fixed = [...result.chosen];
  if (state.steps !== null) state.steps = Math.max(state.steps, state.fixed.length);
}

function listenToTraining() {
  byId("rate").addEventListener("change", () => {
    training.rate = Number(byId("rate").value);
    draw();
  });
  byId("sgd").addEventListener("click", takeStep);
  byId("sgd-undo").addEventListener("click", () => {
    model.weights = training.trained;
    Object.assign(training, { trained: null, taken: [], rate: null });
    byId("sgd").focus(); // the button is about to be disabled
    state.fixed = [];
    run();
  });
  byId("target").addEventListener("change", () => {
    const typed = byId("target").value;
    const id = OUTCOMES.findIndex((word) => word === typed || visible(word) === typed);
    const what = CLASSES ? "class" : "token";
    byId("target-note").textContent = id < 0 && typed ? `${quoted(typed)} is no ${what} of the model.` : "";
    aim(id);
  });
}

// Make a token or class the target of the chosen row; −1: the next one of the text again
function aim(id) {
  state.target = id < 0 ? null : { row: scoredRow(place("target")), id };
  training.rate = null;
  draw();
  rank();
}
