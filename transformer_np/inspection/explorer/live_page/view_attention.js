// One head: all pairs of a query and a key, with what can be changed in it.

const SHOWN = { weight: "weight A", score: "score S", dweight: "gradient ∂L/∂A", dscore: "gradient ∂L/∂S" };
const WRITTEN_COLUMNS = 10; // with more keys than this the cells have colours only

// The matrix that is shown (T, S): weights, scores or gradients.
function shownMatrix() {
  if (state.show === "weight" || state.show === "score") return value(`${path()}.${state.show}s`)[state.head];
  return gradients()[state.show];
}

function drawAttention() {
  const { kind, head } = state;
  const found = gradients();
  if (!found && state.show.startsWith("d")) state.show = "weight";
  for (const radio of document.querySelectorAll("input[name=show]")) {
    radio.checked = radio.value === state.show;
    radio.disabled = radio.value.startsWith("d") && !found;
  }
  byId("gradient-note").replaceChildren(...gradientNote(found));
  byId("head-on").checked = !changesOf("head").length;
  const matrix = shownMatrix();
  const scores = value(`${path()}.scores`)[head];
  const isSeen = (t, s) => scores.at(t, s) !== -Infinity;
  const [rows, keys] = [words(kind.rows), words(kind.keys)];
  const signed = state.show !== "weight";
  const seen = Array.from(matrix.data).filter((_, i) => isSeen(Math.floor(i / keys.length), i % keys.length));
  const largest = signed ? largestOf(seen) : 1;
  const write = state.show.startsWith("d") ? precise : rounded;
  const columns = keys.map((word, s) => element("th", { scope: "col" }, isolated(word), keySwitch(s, word)));
  const lines = rows.map((_, t) => {
    const name = rowName(kind.rows, t);
    const cells = keys.map((word, s) => {
      const hidden = !isSeen(t, s);
      const number = hidden ? "hidden" : write(matrix.at(t, s));
      const here = t === place() && s === state.key;
      const text = keys.length > WRITTEN_COLUMNS || hidden ? "" : number;
      const cell = choice(
        `cell ${t} ${s}`,
        { here, pressed: here, label: `${name}, key ${word}: ${SHOWN[state.show]} ${number}` },
        () => select({ [kind.rows]: t, key: s }),
        text,
      );
      cell.title = cell.getAttribute("aria-label");
      if (hidden) cell.classList.add("hidden");
      else tint(cell, matrix.at(t, s), largest, signed);
      if (changesOf("score").some((change) => change.query === t && change.key === s)) cell.classList.add("changed");
      return element("td", {}, cell);
    });
    return tableRow("td", element("th", { scope: "row" }, isolated(name)), ...cells);
  });
  byId("map").classList.toggle("many", keys.length > WRITTEN_COLUMNS);
  redraw(
    byId("map"),
    element("thead", {}, tableRow("th", heading("query \\ key", "col"), ...columns)),
    element("tbody", {}, ...lines),
  );
  drawPair(scores, head);
}

function gradientNote(found) {
  if (found) return [`The loss of this text is L = ${rounded(data.gradients.loss)} nats per token, teacher forcing.`];
  if (!data.gradients) return [];
  return [
    "The page has gradients only for its first text, without changes: ",
    isolated(quoted(data.text)),
    translates ? ", translated greedily to the end." : ", before anything is written.",
  ];
}

// The switch above a column: whether queries see this key.
function keySwitch(s, word) {
  const hiding = changesOf("key").filter((change) => change.key === s);
  const box = element("input", { type: "checkbox", "data-key": `key ${s}`, "aria-label": `key ${word} is seen` });
  box.checked = !hiding.length;
  box.title = box.checked ? `hide “${word}”` : `show “${word}” again`;
  box.addEventListener("change", () => {
    if (hiding.length) state.changes = state.changes.filter((change) => !hiding.includes(change));
    else {
      const scope = byId("scope").value;
      const { kind, layer, head } = here();
      state.changes.push({
        type: "key",
        kind,
        layer: scope === "all" ? null : layer,
        head: scope === "head" ? head : null,
        key: s,
        word,
      });
    }
    run();
  });
  return box;
}

// The chosen pair in words and numbers, and its score to drag.
function drawPair(scores, head) {
  const { kind, key: s } = state;
  const t = place();
  const weights = value(`${path()}.weights`)[head];
  const [q, k] = [value(`${path()}.q`)[head], value(`${path()}.k`)[head]];
  const [score, K] = [scores.at(t, s), q.columns];
  const product = dot(q.row(t), k.row(s));
  const hidden = score === -Infinity;
  const edited = changesOf("score").find((change) => change.query === t && change.key === s);
  const [dotted, root, divided] = [product, Math.sqrt(K), product / Math.sqrt(K)].map(rounded);
  const computed = `q · k / √${K} = ${dotted} / ${root} = ${divided}`;
  const parts = [isolated(rowName(kind.rows, t)), ", key ", isolated(words(kind.keys)[s]), `: score S = ${computed}`];
  if (edited) parts.push(`, changed to ${rounded(edited.value)}`);
  if (hidden) parts.push(isHidden(kind, t, s) ? ", but the mask hides the future: " : ", but the key is hidden: ");
  else parts.push("; softmax of the row: ");
  parts.push(`weight A = ${rounded(weights.at(t, s))}.`);
  byId("pair").replaceChildren(...parts);
  const bound = Math.max(10, Math.ceil((1.5 * Math.abs(product)) / Math.sqrt(K)));
  for (const input of [byId("score"), byId("score-number")]) {
    input.disabled = hidden;
    input.setAttribute("aria-label", `score of ${rowName(kind.rows, t)}, key ${words(kind.keys)[s]}`);
    if (input === document.activeElement && input.type === "number") continue; // it is being typed
    Object.assign(input, input.type === "range" ? { min: -bound, max: bound } : {});
    input.value = (edited ? edited.value : product / Math.sqrt(K)).toFixed(2);
  }
  byId("score-reset").disabled = !edited;
}

function editScore(number) {
  if (!Number.isFinite(number)) return;
  const { key } = state;
  const query = place();
  const edited = changesOf("score").find((change) => change.query === query && change.key === key);
  if (edited) edited.value = number;
  else
    state.changes.push({
      type: "score",
      ...here(),
      query,
      key,
      value: number,
      before: value(`${path()}.scores`)[state.head].at(query, key),
    });
  run();
}

function listenToAttention() {
  byId("head-on").addEventListener("change", (event) => {
    state.changes = state.changes.filter((change) => !changesOf("head").includes(change));
    if (!event.target.checked) state.changes.push({ type: "head", ...here() });
    run();
  });
  for (const radio of document.querySelectorAll("input[name=show]")) {
    radio.addEventListener("change", () => {
      state.show = radio.value;
      draw();
    });
  }
  byId("score").addEventListener("input", (event) => editScore(Number(event.target.value)));
  byId("score-number").addEventListener(
    "input",
    (event) => event.target.value !== "" && editScore(Number(event.target.value)),
  );
  byId("score-reset").addEventListener("click", () => {
    const edited = changesOf("score").find((change) => change.query === place() && change.key === state.key);
    byId("score").focus(); // the button is about to be disabled
    undo(edited);
  });
  moveWithArrows(byId("map"), () => words(state.kind.keys).length);
}
