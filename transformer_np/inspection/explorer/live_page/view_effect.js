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

// Every head and every sub-layer off in turn: how much the loss of this text rises. One at a time, while nothing else is
// asked for.
let ranking = { key: null };
function rank() {
  const key = JSON.stringify([unchanged.src, unchanged.given, state.target]);
  if (ranking.key === key && ranking.weights === model.weights) return drawRanking();
  const turn = (ranking = { key, weights: model.weights, found: [], all: candidates(), run: unchanged });
  const next = () => {
    if (turn !== ranking || onStage()) return (ranking = turn === ranking ? { key: null } : ranking);
    const began = performance.now();
    if (turn.found.length === 1 && !turn.asked && turn.each * turn.all.length > LONG) return askToRank(turn, next);
    while (turn.found.length < turn.all.length && performance.now() - began < TURN / 2) {
      turn.found.push(measured(turn.run, turn.all[turn.found.length]));
      turn.each = performance.now() - began;
      if (turn.found.length === 1) break;
    }
    if (turn.found.length < turn.all.length) setTimeout(next, 10);
    else drawRanking();
  };
  byId("ranking").replaceChildren(element("li", { class: "quiet" }, "Measuring every head …"));
  document.documentElement.dataset.ranked = "";
  setTimeout(next, 500); // whoever types is not held up
}

function measured(run, change) {
  const { before, after } = effectOf(run.values, teacherForced(run, expanded([change])));
  return { change, rise: after - before };
}
// The head or sub-layer that matters most for the text; all are measured now, unless they are already.
function bestChange(type) {
  const known = ranking.run === unchanged && ranking.found.length === ranking.all.length;
  const all = known ? ranking.found : candidates().filter((change) => change.type === type).map((change) => measured(unchanged, change));
  return all.filter(({ change }) => change.type === type).sort((a, b) => b.rise - a.rise)[0].change;
}

const LONG = 6000; // ms

// In a large model, the ranking waits until it is asked for.
function askToRank(turn, next) {
  const seconds = Math.ceil((turn.each * turn.all.length) / 1000);
  const button = element("button", { type: "button" }, `Measure all heads, about ${seconds} s`);
  button.addEventListener("click", () => {
    turn.asked = true;
    byId("ranking").replaceChildren(element("li", { class: "quiet" }, "Measuring every head …"));
    setTimeout(next, 0);
  });
  byId("ranking").replaceChildren(element("li", {}, button));
  document.documentElement.dataset.ranked = "asked";
}

function candidates() {
  const heads = KINDS.flatMap((kind) =>
    Array.from({ length: kind.layers * H }, (_, i) => ({
      type: "head",
      kind: kind.name,
      layer: Math.floor(i / H),
      head: i % H,
    })),
  );
  const parts = KINDS.flatMap((kind) =>
    Array.from({ length: kind.layers }, (_, i) => [`${kind.path(i)}.out`, `${kind.block(i)}.feed_forward.out`]).flat(),
  );
  return [...heads, ...[...new Set(parts)].map((name) => ({ type: "off", name }))];
}

function drawRanking() {
  if (!ranking.all || ranking.found.length < ranking.all.length) return;
  const order = [...ranking.found].sort((a, b) => b.rise - a.rise);
  const best = [
    ...order.filter(({ change }) => change.type === "head").slice(0, 5),
    ...order.filter(({ change }) => change.type === "off").slice(0, 2),
    ...order.slice(-1),
  ];
  const items = best.map(({ change, rise }, i) => {
    const text = (change.type === "head" ? nameOf(change) : nameOfPart(change.name))
      .replace("self-attention, layer", "self")
      .replace("cross-attention, layer", "cross")
      .replace(", layer", "");
    const on = state.changes.some((each) =>
      ["type", "kind", "layer", "head", "name"].every((key) => each[key] === change[key]),
    );
    const button = choice(
      `try ${i}`,
      { pressed: on, name: "try" },
      () => tryOut(change),
      element("span", {}, text),
      " ",
      element("span", { class: "amount" }, model.speaks ? `L ${signed(rise, precise3)}` : `${rise.toFixed(3)}`),
    );
    button.tabIndex = 0;
    return element("li", {}, button);
  });
  redraw(byId("ranking"), ...items);
  document.documentElement.dataset.ranked = "yes";
}

function tryOut(change) {
  lookAt(change);
  toggle(change);
}
