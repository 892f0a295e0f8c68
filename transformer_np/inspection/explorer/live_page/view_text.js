// The text, its tokens, and what the model writes.

const MORE = 20; // tokens of a text without an end

function drawText() {
  if (translates) drawTokens("tokens", "source", words("source"), place("source"), (i) => state.pieces[i].id);
  drawTokens("steps", "target", words("target"), place("target"), (i) => result.given[i]);
  if (fills) {
    byId("next").textContent = state.masked.includes(place("target")) ? `Show this ${UNIT}` : `Mask this ${UNIT}`;
    byId("restart").disabled = !state.masked.length;
    byId("output").replaceChildren(isolated(guessed(result)));
    return;
  }
  if (isOver()) byId("steps").append(element("span", { class: "chip end" }, isolated(tokenOf(result.chosen.at(-1)))));
  byId("output").replaceChildren(isolated(output(result)));
  byId("next").disabled = byId("finish").disabled = isOver();
  byId("restart").disabled = !result.chosen.length;
  const { temperature } = state.how;
  for (const id of ["temperature", "top-k", "top-p", "again"]) byId(id).disabled = !temperature;
  byId("temperature-value").textContent = Number(byId("temperature").value).toFixed(1);
  byId("top-p-value").textContent = Number(byId("top-p").value).toFixed(2);
}

// The tokens that a side reads, each a row of the matrices. The chosen one is in sight.
function drawTokens(id, side, names, at, idOf) {
  const first = side === "target" ? firstRow() : Infinity;
  const list = byId(id);
  for (const extra of [...list.children].slice(names.length)) extra.remove();
  list.querySelector(".end")?.remove();
  const chips = names.map((name, i) => {
    const made =
      list.children[i] ?? // one that is there already does the same
      list.appendChild(choice(`${side} ${i}`, {}, () => select({ [side]: i }), isolated("")));
    const unknown = idOf(i) === reader.unknown;
    update(made, {
      className: `chip${i > first ? " own" : ""}${unknown ? " unknown" : ""}`,
      title: unknown ? "not in the vocabulary: <unk>" : `row ${i + 1}, id ${idOf(i)}`,
      tabIndex: i === at ? 0 : -1,
      ariaPressed: String(i === at),
    });
    update(made.firstChild, { textContent: name });
    return made;
  });
  const show = () =>
    chips[at]?.isConnected &&
    byId(id).scrollTo({
      left: chips[at].offsetLeft + chips[at].offsetWidth - byId(id).offsetLeft - byId(id).clientWidth + 8,
    });
  requestAnimationFrame(show); // to ask for a place now would make the browser lay out the page twice
}

// The text with the best guess for every masked token; of a classifier the best class.
function guessed(run) {
  if (!model.speaks) return "This model has no layer that guesses words: it makes a vector of the text.";
  if (CLASSES) return CLASSES[best(run, 0)];
  const ids = run.given.map((id, t) => (id === MASK ? best(run, t) : id));
  return run.given.includes(MASK) ? writer.decode(ids) : "Mask a token, and the model guesses it.";
}

function mask(t) {
  const { masked } = state;
  state.masked = masked.includes(t) ? masked.filter((each) => each !== t) : [...masked, t];
  state.target = null;
  run();
}

function output(run) {
  const { chosen } = run;
  if (fills) return guessed(run);
  if (translates) return writer.decode(chosen) || "…";
  return `${state.text}${writer.decode(chosen, true)}`;
}

// Take another token at a step; what follows is written again.
function takeInstead(step, id) {
  state.fixed = [...result.chosen.slice(0, step), id];
  if (state.steps !== null) state.steps = Math.max(state.steps, step + 1);
  state.place.target = step + firstRow() + (id === END ? 0 : 1);
  run();
}

function type(text) {
  byId("text").value = text;
  byId("remark").textContent = take(text);
  run();
}

function readHow() {
  const drawn = byId("choice").value === "sample";
  Object.assign(state.how, {
    temperature: drawn ? Number(byId("temperature").value) : 0,
    topK: Math.max(0, Math.round(Number(byId("top-k").value)) || 0),
    topP: Number(byId("top-p").value),
  });
  state.fixed = [];
  run();
}

function listenToText() {
  byId("text").value = state.text;
  byId("text").addEventListener("input", () => {
    byId("remark").textContent = take(byId("text").value);
    run();
  });
  byId("random").hidden = !data.examples.length;
  byId("random").addEventListener("click", () => {
    const others = data.examples.filter((text) => text !== byId("text").value);
    type(others[Math.floor(Math.random() * others.length)]);
  });
  byId("restart").addEventListener("click", () => {
    if (fills) {
      state.masked = [];
      byId("next").focus(); // the button is about to be disabled
      return run();
    }
    Object.assign(state, { steps: 0, fixed: [] });
    state.place.target = Infinity;
    run();
  });
  byId("next").addEventListener("click", () => {
    if (fills) return mask(place("target"));
    state.steps = result.chosen.length + 1;
    state.place.target = Infinity;
    run(result.chosen);
  });
  byId("finish").addEventListener("click", () => {
    state.steps = translates ? null : result.chosen.length + MORE;
    state.place.target = Infinity;
    run(result.chosen);
  });
  for (const id of ["choice", "temperature", "top-k", "top-p"]) byId(id).addEventListener("input", readHow);
  byId("again").addEventListener("click", () => {
    state.how.seed++;
    state.fixed = [];
    run();
  });
  for (const id of ["tokens", "steps", "bars"]) moveWithArrows(byId(id));
  byId("words").hidden = !seen.words.length;
  byId("words").firstElementChild.textContent = `The ${seen.words.length.toLocaleString("en")} words that it has seen`;
  byId("word-list").textContent = seen.words.join(" ");
}
