// The whole model: every head of every layer as a small picture, and the list of changes.

function drawModel() {
  const blocks = KINDS.map((kind) => {
    const rows = Array.from({ length: kind.layers }, (_, layer) => {
      const heads = Array.from({ length: model.heads }, (_, head) => thumbnail(kind, layer, head));
      return element(
        "div",
        { class: "layer", role: "group", "aria-label": `${kind.title}, layer ${layer + 1}` },
        element("span", { "aria-hidden": "true" }, `layer ${layer + 1}`),
        ...heads,
      );
    });
    const [asks, answers] = [kind.rows, kind.keys].map((side) => (translates ? side : "text"));
    const title = element(
      "h3",
      {},
      capital(kind.title),
      " ",
      element("small", {}, asks === answers ? `${asks} looks at itself` : `${asks} looks at ${answers}`),
    );
    rows.reverse(); // the data flow upwards, as in the paper's figure
    return element("section", { class: "kind", "aria-label": kind.title }, title, ...rows);
  });
  redraw(byId("model"), ...blocks);
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

function thumbnail(kind, layer, head) {
  const weights = value(`${kind.path(layer)}.weights`)[head];
  const canvas = element("canvas", { "aria-hidden": "true" });
  paint(canvas, weights, { signed: false, hidden: (t, s) => isHidden(kind, t, s) });
  const at = { kind: kind.name, layer, head };
  const changed = ["head", "key", "score"].some((type) => changesOf(type, at).length);
  const off = changesOf("head", at).length > 0;
  const pressed = state.kind === kind && state.layer === layer && state.head === head;
  const condition = off ? ", off" : changed ? ", changed" : "";
  const label = `layer ${layer + 1}, head ${head + 1}${condition}: ${strongest(kind, weights)}`;
  const key = `${kind.name} ${layer} ${head}`;
  const button = choice(
    key,
    { here: pressed, pressed, label, name: "thumb" },
    () => select({ kind, layer, head }),
    canvas,
    element("span", {}, `${head + 1}${off ? " off" : changed ? " *" : ""}`),
  );
  button.title = label;
  button.classList.toggle("off", off);
  return button;
}

// The pair of different words with the largest weight, in words.
function strongest(kind, weights) {
  let [best, at] = [-1, [0, 0]];
  for (let t = 0; t < weights.rows; t++) {
    for (let s = 0; s < weights.columns; s++) {
      const itself = kind.rows === kind.keys && t === s;
      if (weights.at(t, s) > best && !itself) [best, at] = [weights.at(t, s), [t, s]];
    }
  }
  return best < 0
    ? "only itself"
    : `${rowName(kind.rows, at[0])} looks at ${words(kind.keys)[at[1]]}, weight ${rounded(best)}`;
}

function nameOf({ kind, layer, head }) {
  const { title } = KINDS.find(({ name }) => name === kind);
  return [
    title,
    layer === null ? "all layers" : `layer ${layer + 1}`,
    head === null ? "all heads" : `head ${head + 1}`,
  ].join(", ");
}

function described(change) {
  const kind = KINDS.find(({ name }) => name === change.kind);
  if (change.type === "head") return [`Off: ${nameOf(change)}`];
  if (change.type === "key") return ["Hidden key ", isolated(quoted(change.word)), `: ${nameOf(change)}`];
  if (change.type === "score") {
    const pair = `${rowName(kind.rows, change.query)}, key ${words(kind.keys)[change.key]}`;
    return [
      `Score ${rounded(change.value)} instead of ${rounded(change.before)}: `,
      isolated(pair),
      `; ${nameOf(change)}`,
    ];
  }
  return [
    `Replaced: ${change.label} of `,
    isolated(quoted(change.word)),
    " by that of ",
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

function listenToModel() {
  moveWithArrows(byId("model"), () => model.heads);
  byId("undo-all").addEventListener("click", () => {
    state.changes = [];
    byId("text").focus(); // the button is about to disappear
    run();
  });
}
