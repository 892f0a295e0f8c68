// The text, its tokens, the output step by step and the distribution of the next token.

const BARS = 8;
const MORE = 20; // tokens of a text without an end

function drawText() {
  const embedded = value(translates ? "src_input.out" : "position.out");
  const past = translates ? 0 : state.pieces.length + result.chosen.length - result.given.length; // no longer read
  const largest = largestOf(embedded.data);
  const tokens = state.pieces.map(({ piece, id }, i) => {
    const words = element("span", {}, isolated(visible(piece)), " ", element("small", {}, String(id)));
    const chip = element("li", id === UNK ? { class: "unknown" } : {}, words);
    chip.title = id === UNK ? "not in the vocabulary: <unk>" : `id ${id}`;
    if (i >= past) chip.append(strip(embedded.row(i - past), `embedding and position of ${piece}`, largest));
    return chip;
  });
  byId("tokens").replaceChildren(...tokens);
  byId("output").replaceChildren(isolated(output(result)));
  drawSteps();
  drawBars();
  byId("next").disabled = byId("finish").disabled = isOver();
  byId("restart").disabled = !result.chosen.length;
  byId("temperature").disabled = byId("again").disabled = !state.temperature;
  byId("temperature-value").textContent = Number(byId("temperature").value).toFixed(1);
}

// The output without the changes.
function drawBefore() {
  byId("before").hidden = !unchanged;
  if (unchanged) {
    const same = output(unchanged) === output(result);
    byId("before").replaceChildren(
      same ? "The same as without your changes." : "Without your changes: ",
      same ? "" : isolated(output(unchanged)),
    );
  }
}

function output({ chosen }) {
  if (translates) return writer.decode(chosen) || "…";
  const written = writer.decode(chosen);
  return `${state.text}${written}`;
}

function drawSteps() {
  const next = following();
  const chips = next.map((id, t) => {
    const name = id === null ? "…" : tokenOf(id);
    const own = t >= firstRow() && id !== null;
    const label = id === null ? "the next token, not chosen yet" : `step ${t + 1}: ${name}`;
    const options = {
      here: t === place("target"),
      pressed: t === place("target"),
      label,
      name: own ? "chip own" : "chip",
    };
    return choice(`step ${t}`, options, () => select({ target: t }), isolated(name));
  });
  const start = element("span", { class: "chip start" }, isolated(tokenOf(result.given[0])));
  redraw(byId("steps"), ...(translates ? [] : [start]), ...chips);
}

function drawBars() {
  const t = place("target");
  const probabilities = distribution(model.writable(value("output.out").row(t)), state.temperature);
  const best = ranked(probabilities, BARS).filter(({ p }) => p > 0);
  const taken = following()[t];
  const before = result.given.slice(0, t + 1).map(tokenOf);
  const shown = writer.kind === "word" ? before.slice(-6).join(" ") : before.slice(-24).join("");
  byId("bars-title").replaceChildren(`The ${UNIT} after `, isolated(quoted(shown)));
  const step = t - firstRow();
  const bars = best.map(({ id, p }, i) => {
    const name = tokenOf(id);
    const chosen = id === taken;
    const label = `${name}: ${percent(p)}${chosen ? ", chosen" : ""}`;
    const bar = choice(
      `bar ${i}`,
      { here: i === 0, label, pressed: chosen, name: "next" },
      () => takeInstead(step, id),
      isolated(name),
      element("span", { class: "amount" }, percent(p)),
    );
    bar.disabled = step < 0;
    tint(bar, p, 1, false);
    return bar;
  });
  redraw(byId("bars"), ...bars);
  const rest = Math.max(0, 1 - best.reduce((sum, { p }) => sum + p, 0));
  const count = probabilities.filter((p) => p > 0).length - best.length;
  const others = `${count} others: ${percent(rest)}.`;
  const how = step < 0 ? "This one is in your text." : "Choose one to go on with it instead.";
  byId("bars-note").textContent = `${count > 0 ? `${others} ` : ""}${how}`;
}

// Take another token at a step; what follows is written again.
function takeInstead(step, id) {
  state.fixed = [...result.chosen.slice(0, step), id];
  if (state.steps !== null) state.steps = Math.max(state.steps, step + 1);
  state.place.target = step + firstRow() + (id === END ? 0 : 1);
  run();
}

function listenToText() {
  byId("text").value = state.text;
  byId("text").addEventListener("input", () => {
    byId("remark").textContent = take(byId("text").value);
    run();
  });
  byId("restart").addEventListener("click", () => {
    Object.assign(state, { steps: 0, fixed: [] });
    state.place.target = Infinity;
    run();
  });
  byId("next").addEventListener("click", () => {
    state.steps = result.chosen.length + 1;
    state.place.target = Infinity;
    run(result.chosen);
  });
  byId("finish").addEventListener("click", () => {
    state.steps = translates ? null : result.chosen.length + MORE;
    state.place.target = Infinity;
    run(result.chosen);
  });
  const temperature = () => {
    state.temperature =
      document.querySelector("input[name=choice]:checked").value === "greedy" ? 0 : Number(byId("temperature").value);
    run();
  };
  for (const input of [byId("temperature"), ...document.querySelectorAll("input[name=choice]")])
    input.addEventListener("input", temperature);
  byId("again").addEventListener("click", () => {
    state.seed++;
    run();
  });
  moveWithArrows(byId("steps"));
  moveWithArrows(byId("bars"));
}
