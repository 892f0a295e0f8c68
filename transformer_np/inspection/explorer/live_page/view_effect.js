// What a change does: the next token before and after, the probability of the target, the loss of the text; and which
// heads matter most for this text.

const BARS = 7;

// p of the next token at the chosen row, now and with the unchanged model for the same beginning.
function drawEffect() {
  if (!model.speaks) return drawSimilar();
  const t = scoredRow(place("target"));
  const [now, before] = [result.values, teacherForced(result, [])].map((values) =>
    distribution(model.writable(values["output.out"].row(t)), state.how),
  );
  const changed = state.changes.length > 0;
  const ids = [
    ...new Set(
      [...ranked(now, BARS), ...(changed ? ranked(before, 3) : [])].filter(({ p }) => p > 0).map(({ id }) => id),
    ),
  ].slice(0, BARS + 1);
  const taken = CLASSES ? targets()[0] : (following()[t] ?? (fills ? result.given[t] : null));
  const beginning = result.given.slice(0, t + 1).map(tokenOf);
  const shown = writer.kind === "word" ? beginning.slice(-4).join(" ") : beginning.slice(-18).join("");
  const asked = CLASSES
    ? ["The class of this text"]
    : fills
    ? ["The guess at ", isolated(quoted(tokenOf(result.given[t])))]
    : [`The ${UNIT} after `, isolated(quoted(shown))];
  byId("bars-title").replaceChildren(...asked);
  const step = fills ? -1 : t - firstRow();
  const bars = ids.map((id, i) => {
    const name = outcomeOf(id);
    const chosen = id === taken;
    const difference = changed ? now[id] - before[id] : 0;
    const amount = element("span", { class: "amount" }, percent(now[id]));
    if (changed) amount.prepend(element("small", { title: "percentage points" }, `${points(difference)} `));
    const bar = choice(
      `bar ${i}`,
      { here: i === 0, pressed: chosen, name: "next" },
      () => (CLASSES ? aim(id) : takeInstead(step, id)),
      isolated(name),
      " ",
      amount,
    );
    bar.disabled = step < 0 && !CLASSES;
    if (changed) bar.title = `before the changes: ${percent(before[id])}`;
    tint(bar, now[id], 1, false);
    if (changed) bar.style.setProperty("--before", `${100 * before[id]}%`);
    bar.classList.toggle("compared", changed);
    return bar;
  });
  redraw(byId("bars"), ...bars);
  const isText = fills
    ? result.given[t] === MASK
      ? ""
      : "The model sees this one: mask it."
    : "This one is in your text.";
  byId("bars-note").textContent = CLASSES
    ? "Choose one as the target of the loss."
    : step < 0
      ? isText
      : "Choose one to go on with it.";
  drawNumbers(t, now, before);
}
const points = (difference) =>
  Math.abs(difference) < 5e-4 ? "±0" : `${difference < 0 ? "−" : "+"}${(100 * Math.abs(difference)).toFixed(1)}`;

// The target's p and the loss of the text, before and after the changes or the steps of SGD. On the stage they are there
// before anything changes.
function drawNumbers(t, now, before) {
  const { taken } = training;
  const changed = state.changes.length > 0;
  if (state.worked || (!changed && !onStage())) return byId("effect").replaceChildren();
  const found = changed ? effectOf(unchanged.values, teacherForced(unchanged, expanded(state.changes)), t) : effectOf(unchanged.values, unchanged.values);
  if (taken.length && !changed) found.before = taken[0].loss;
  const same = output(unchanged) === output(result);
  const id =
    state.target?.row === t
      ? state.target.id
      : CLASSES
        ? targets(unchanged)[0]
        : (following(unchanged)[Math.min(t, unchanged.given.length - 1)] ?? ranked(before, 1)[0].id);
  const line = (name, a, b, write, unit = "") => [
    element("dt", {}, name),
    write(a) === write(b)
      ? element("dd", {}, write(b))
      : element("dd", {}, `${write(a)} → ${write(b)} `, element("strong", {}, `(${unit ? `${points(b - a)} ${unit}` : signed(b - a, write)})`)),
  ];
  byId("effect").replaceChildren(
    ...line(`p of ${quoted(outcomeOf(id))}`, before[id], now[id], percent, "percentage points"),
    ...line("loss of the text", found.before, found.after, precise3),
    ...(changed ? [element("dt", {}, CLASSES ? "the class" : "the text"), element("dd", {}, same ? "stays the same" : isolated(`was: ${output(unchanged)}`))] : []),
  );
}
const precise3 = (x) => (x < 0.0005 ? x.toExponential(1).replace("-", "−") : x.toFixed(3));
const signed = (x, write) => (x < 0 ? `−${write(-x)}` : `+${write(x)}`);

// The loss of the unchanged text under two runs of it. Without words to guess: how far the vector of the text turns.
function effectOf(before, after) {
  if (!model.speaks) return { before: 0, after: 1 - cosine(textVector(before), textVector(after)) };
  const wanted = targets(unchanged);
  const loss = (values) => crossEntropy(values["output.out"], wanted).loss;
  return { before: loss(before), after: loss(after) };
}

// --- try these -------------------------------------------------------------------------------------------------------

// How much the loss rises without each head and each sub-layer. One backward pass estimates all of them, while nothing else
// is asked for; to switch off one after the other takes longer and is done on demand.
//   { key, weights, run, all: the changes, estimated: their rises or null, found: { change, rise }, as far as measured }
let ranking = { key: null };
function rank() {
  const key = JSON.stringify([unchanged.src, unchanged.given, state.target]);
  if (ranking.key === key && ranking.weights === model.weights) return drawRanking();
  const turn = (ranking = { key, weights: model.weights, run: unchanged, all: candidates(), estimated: null, found: [] });
  document.documentElement.dataset.ranked = "";
  const estimate = () => {
    if (turn !== ranking || onStage()) return (ranking = turn === ranking ? { key: null } : ranking);
    turn.estimated = estimates(turn.run, turn.all);
    drawRanking();
  };
  byId("ranking").replaceChildren(element("li", { class: "quiet" }, "Estimating every head …"));
  setTimeout(estimate, 500); // whoever types is not held up
}

function measured(run, change) {
  const { before, after } = effectOf(run.values, teacherForced(run, expanded([change])));
  return { change, rise: after - before };
}
// The rise of the loss by its first-order term, −Σ z · ∂L/∂z for the output z of each part ("attribution patching", Nanda
// 2023); null for a model without a loss: its vector is the best one for the cosine with itself, where the slope is 0
function estimates(run, changes) {
  if (!model.speaks) return null;
  const { dlogits } = crossEntropy(run.values["output.out"], targets(run));
  const { gradients } = backward(model, run, dlogits, false);
  return changes.map(({ type, kind, layer, head, name }) => {
    const of = name ?? `${KINDS.find((each) => each.name === kind).path(layer)}.concat`;
    const [z, slope] = [run.values[of], gradients[of]];
    const K = z.columns / (type === "head" ? H : 1);
    const part = (matrix, t) => matrix.row(t).subarray((head ?? 0) * K, ((head ?? 0) + 1) * K);
    let sum = 0;
    for (let t = 0; t < z.rows; t++) sum -= dot(part(z, t), part(slope, t));
    return sum;
  });
}

// The head or sub-layer that matters most for the text: the strongest by the estimate are measured. "wrote": the head that
// adds most to the logit of the scored row
const MEASURED = 12;
function bestChange(type) {
  if (type === "wrote") return strongestWriter();
  const all = candidates().filter((change) => change.type === type);
  const rises = estimates(unchanged, all);
  const order = all.map((change, i) => ({ change, rise: rises[i] })).sort((a, b) => b.rise - a.rise);
  const tried = order.slice(0, MEASURED).map(({ change }) => measured(unchanged, change));
  return tried.sort((a, b) => b.rise - a.rise)[0].change;
}
function strongestWriter() {
  const t = place("target");
  const { parts } = contributions(model, unchanged.values, wrote(t), t);
  const kinds = KINDS.filter(({ rows }) => rows === "target");
  const all = parts.flatMap(({ heads }, i) => heads.map((adds, head) => ({ adds, head, kind: kinds[i % kinds.length].name, layer: Math.floor(i / kinds.length) })));
  const { kind, layer, head } = all.reduce((a, b) => (b.adds > a.adds ? b : a));
  return { type: "head", kind, layer, head };
}

// Switch off every head and sub-layer in turn, with the progress in sight.
function measureAll() {
  const turn = ranking;
  const began = performance.now();
  document.documentElement.dataset.ranked = "";
  const next = () => {
    if (turn !== ranking || onStage()) return;
    const end = performance.now() + TURN / 2;
    do turn.found.push(measured(turn.run, turn.all[turn.found.length]));
    while (turn.found.length < turn.all.length && performance.now() < end);
    if (turn.found.length === turn.all.length) return drawRanking();
    const left = ((performance.now() - began) / turn.found.length) * (turn.all.length - turn.found.length);
    byId("measured").textContent = `${turn.found.length} of ${turn.all.length} measured, about ${Math.ceil(left / 1000)} s left`;
    setTimeout(next, 10);
  };
  byId("measured").textContent = "Measuring …";
  setTimeout(next, 0);
}

function candidates() {
  const heads = KINDS.flatMap(({ name, layers }) =>
    Array.from({ length: layers * H }, (_, i) => ({ type: "head", kind: name, layer: Math.floor(i / H), head: i % H })),
  );
  const parts = KINDS.flatMap((kind) => Array.from({ length: kind.layers }, (_, i) => [`${kind.path(i)}.out`, `${kind.block(i)}.feed_forward.out`]).flat());
  return [...heads, ...[...new Set(parts)].map((name) => ({ type: "off", name }))];
}

function drawRanking() {
  const { all, estimated, found } = ranking;
  const whole = found.length === all?.length;
  if (!all || !(estimated || whole || !model.speaks) || (found.length && !whole)) return;
  const rises = whole ? found.map(({ rise }) => rise) : estimated;
  const order = rises ? all.map((change, i) => ({ change, rise: rises[i], estimate: estimated?.[i] })).sort((a, b) => b.rise - a.rise) : [];
  const some = (type, count) => order.filter(({ change }) => change.type === type).slice(0, count);
  const write = (x) => (model.speaks ? signed(x, precise3) : x.toFixed(3));
  const items = [...new Set([...some("head", 5), ...some("off", 2), ...order.slice(-1)])].map(({ change, rise, estimate }, i) => {
    const text = (change.type === "head" ? nameOf(change) : nameOfPart(change.name))
      .replace("self-attention, layer", "self")
      .replace("cross-attention, layer", "cross")
      .replace(", layer", "");
    const pressed = state.changes.some((each) => ["type", "kind", "layer", "head", "name"].every((key) => each[key] === change[key]));
    const amount = element("span", { class: "amount" }, whole ? write(rise) : `≈ ${write(rise)}`);
    if (whole && estimated) amount.prepend(element("small", { title: "as estimated" }, `≈ ${write(estimate)} `));
    const act = () => {
      lookAt(change);
      toggle(change);
    };
    const button = choice(`try ${i}`, { pressed, name: "try" }, act, element("span", {}, text), " ", amount);
    button.tabIndex = 0;
    return element("li", {}, button);
  });
  redraw(byId("ranking"), ...items);
  byId("measure").hidden = whole;
  byId("measure").textContent = `Measure all ${all.length}`;
  byId("measured").textContent = whole ? `Measured${estimated ? "; ≈: as a backward pass estimates it" : ""}.` : estimated ? "Estimated by one backward pass." : "";
  document.documentElement.dataset.ranked = whole ? "measured" : "estimated";
}
