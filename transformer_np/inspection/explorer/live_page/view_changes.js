// What can be changed at the step that is open, and the list of changes.

const SWITCHES = {
  scale: "no division by √d_k",
  mask: "no causal mask",
  positions: "no positions",
  residual: "no residual paths",
};

function nameOf({ kind, layer, head }) {
  const { title } = KINDS.find(({ name }) => name === kind);
  const part = [
    title,
    layer === null ? "all layers" : `layer ${layer + 1}`,
    head === null ? "all heads" : `head ${head + 1}`,
  ];
  return part.join(", ");
}
const PARTS = {
  attention: "self-attention",
  self_attention: "self-attention",
  cross_attention: "cross-attention",
  feed_forward: "feed-forward",
};
function nameOfPart(name) {
  const [stack, layer, part] = name.split(".");
  return `${stack === "blocks" ? "" : `${stack} `}${PARTS[part]}, layer ${Number(layer) + 1}`;
}

function described(change) {
  if (change.type in SWITCHES) return [`The whole model: ${SWITCHES[change.type]}`];
  if (change.type === "off") return [`Off: ${nameOfPart(change.name)}`];
  if (change.type === "head") return [`Off: ${nameOf(change)}`];
  if (change.type === "uniform") return [`Equal weights: ${nameOf(change)}`];
  if (change.type === "key") return ["Hidden: ", isolated(quoted(change.word)), ` from ${nameOf(change)}`];
  if (change.type === "score")
    return [
      `Score ${rounded(change.value)} instead of ${rounded(change.before)}: `,
      isolated(change.pair),
      `; ${nameOf(change)}`,
    ];
  return [
    `Replaced: ${change.label} of `,
    isolated(quoted(change.word)),
    " with that of ",
    isolated(quoted(change.donorWord)),
    " in ",
    isolated(quoted(change.donor)),
  ];
}

function drawChanges() {
  byId("changes").hidden = !state.changes.length;
  const items = state.changes.map((change, i) => {
    const text = described(change);
    const label = `Undo: ${text.map((part) => part.textContent ?? part).join("")}`;
    const button = choice(`undo ${i}`, { label }, () => undo(change), "Undo");
    button.tabIndex = 0;
    return element("li", {}, button, " ", ...text);
  });
  redraw(byId("change-list"), ...items);
}

// --- the controls of the step that is open ---------------------------------------------------------------------------

function drawControls(row, step) {
  const inHead = row.kind && IN_HEAD.includes(step.id);
  byId("head-controls").hidden = !inHead;
  byId("head-off").checked = changesOf("head").length > 0;
  byId("head-uniform").checked = changesOf("uniform").length > 0;
  const pair = row.kind && ["scores", "mask", "weights"].includes(step.id);
  byId("pair-controls").hidden = !pair;
  if (pair) drawPair();
  const part = row.kind ? row.kind.part : row.title === "Feed-forward" ? "feed_forward" : null;
  byId("part-controls").hidden = !part;
  if (part) {
    const name = `${state.kind.block(state.layer)}.${part}.out`;
    byId("part-off").checked = state.changes.some((change) => change.name === name);
    byId("part-off").dataset.name = name;
    byId("part-off-label").textContent = `${PARTS[part]} of layer ${state.layer + 1} is off`;
  }
  for (const name of Object.keys(SWITCHES))
    byId(`switch-${name}`).checked = state.changes.some(({ type }) => type === name);
}

// The chosen pair: its key can be hidden, and its score changed.
function drawPair() {
  const { kind, column: s, head } = state;
  const t = place();
  const score = value(`${path()}.scores`)[head].at(t, s);
  const edited = changesOf("score").find((change) => change.query === t && change.key === s);
  const hidden = score === -Infinity;
  const word = words(kind.keys)[s];
  byId("key-name").replaceChildren("hide ", isolated(quoted(word)), " from");
  byId("key-hidden").checked = changesOf("key").some((change) => change.key === s);
  for (const input of [byId("score"), byId("score-number")]) {
    input.disabled = hidden;
    input.setAttribute("aria-label", `score of ${words(kind.rows)[t]}, key ${word}`);
    if (input === document.activeElement && input.type === "number") continue; // it is being typed
    if (!hidden) input.value = score.toFixed(2);
  }
  byId("score-reset").disabled = !edited;
}

function hideKey() {
  const hiding = changesOf("key").filter(({ key }) => key === state.column);
  if (hiding.length) state.changes = state.changes.filter((change) => !hiding.includes(change));
  else {
    const scope = byId("scope").value;
    const { kind, layer, head } = here();
    const [l, h] = [scope === "all" ? null : layer, scope === "head" ? head : null];
    state.changes.push({
      type: "key",
      kind,
      layer: l,
      head: h,
      key: state.column,
      word: words(state.kind.keys)[state.column],
    });
  }
  run();
}

function editScore(number) {
  if (!Number.isFinite(number)) return;
  const { column: key, kind, head } = state;
  const query = place();
  const edited = changesOf("score").find((change) => change.query === query && change.key === key);
  if (edited) state.changes[state.changes.indexOf(edited)] = { ...edited, value: number };
  else {
    const before = value(`${path()}.scores`)[head].at(query, key);
    const pair = `${words(kind.rows)[query]} → ${words(kind.keys)[key]}`;
    state.changes.push({ type: "score", ...here(), query, key, value: number, before, pair });
  }
  run();
}

function listenToChanges() {
  byId("head-off").addEventListener("change", () => toggle({ type: "head", ...here() }));
  byId("head-uniform").addEventListener("change", () => toggle({ type: "uniform", ...here() }));
  byId("part-off").addEventListener("change", (event) => toggle({ type: "off", name: event.target.dataset.name }));
  for (const name of Object.keys(SWITCHES))
    byId(`switch-${name}`).addEventListener("change", () => toggle({ type: name }));
  byId("key-hidden").addEventListener("change", hideKey);
  byId("score").addEventListener("input", (event) => editScore(Number(event.target.value)));
  byId("score-number").addEventListener(
    "input",
    ({ target }) => target.value !== "" && editScore(Number(target.value)),
  );
  byId("score-reset").addEventListener("click", () => {
    const edited = changesOf("score").find((change) => change.query === place() && change.key === state.column);
    byId("score").focus(); // the button is about to be disabled
    undo(edited);
  });
  byId("measure").addEventListener("click", measureAll);
  byId("undo-all").addEventListener("click", () => {
    state.changes = [];
    byId("text").focus(); // the button is about to disappear
    run();
  });
}
