// The loss of the text that is shown, its target, and steps of SGD.

const RATES = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1];
const training = { rate: null, trained: null, taken: [] }; // trained: the weights that came with the page

function drawTraining() {
  const { loss, targets: wanted, weights } = gradients();
  const t = scoredRow(place("target"));
  const id = wanted[t];
  const p = id === null ? null : softmax(value("output.out").row(t))[id];
  const rows = wanted.filter((each) => each !== null).length;
  byId("loss-text").replaceChildren(
    ...(CLASSES ? ["Target"] : ["Target after ", isolated(quoted(words("target")[t]))]),
    id === null
      ? ": none. "
      : [": ", quoted(outcomeOf(id)), `, p ${isPercent(p)}, −ln p = ${precise3(-Math.log(p))}. `].join(""),
    element("strong", {}, `L = ${precise3(loss)}`),
    CLASSES ? "." : `, the mean over ${rows} row${rows === 1 ? "" : "s"}.`,
  );
  const square = steepness(weights);
  const fall = (rate) => rate * square; // to first order: L(w − η g) ≈ L − η ‖g‖²
  chooseRate();
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
}

// The weights that the step moves most, relative to their length.
const MOVED = 8;
function movedMost() {
  const { weights } = gradients();
  const rows = Object.entries(weights).map(([name, gradient]) => {
    const { data: now } = model.weights[name];
    const before = training.trained?.[name].data;
    const moved = before ? length(now.map((w, i) => w - before[i])) : 0;
    return { name, step: (training.rate ?? RATES[0]) * length(gradient.data), size: length(now), moved };
  });
  rows.sort((a, b) => b.step / (b.size || 1) - a.step / (a.size || 1));
  return rows.slice(0, MOVED);
}

const movedMatrix = (all) => new Matrix(all.length, 2, Float64Array.from(all.flatMap(({ step, size, moved }) => [step, moved].map((x) => (100 * x) / (size || 1)))));

const steepness = (weights) => Object.values(weights).reduce((sum, { data }) => sum + dot(data, data), 0); // ‖∂L/∂w‖²
function chooseRate() {
  const { loss, weights } = gradients();
  training.rate ??= RATES.filter((rate) => rate * steepness(weights) <= 0.2 * loss).at(-1) ?? RATES[0];
}

function takeStep() {
  const { loss, weights } = gradients();
  chooseRate();
  training.trained ??= model.weights;
  training.taken = [...training.taken, { loss, fall: training.rate * steepness(weights) }];
  model.weights = descended(model, weights, training.rate);
  keepText();
}

// The text that is shown stays, so that its loss before and after can be compared.
function keepText() {
  state.fixed = [...result.chosen];
  if (state.steps !== null) state.steps = Math.max(state.steps, state.fixed.length);
}

function asTrained() {
  if (training.trained) model.weights = training.trained;
  Object.assign(training, { trained: null, taken: [], rate: null });
  state.fixed = [];
}

function listenToTraining() {
  byId("rate").addEventListener("change", () => {
    training.rate = Number(byId("rate").value);
    draw();
  });
  byId("sgd").addEventListener("click", () => {
    takeStep();
    run();
  });
  byId("sgd-undo").addEventListener("click", () => {
    asTrained();
    byId("sgd").focus(); // the button is about to be disabled
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
}
