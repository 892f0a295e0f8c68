// The whole model: every head of every layer as a small picture, and the list of changes.

function drawModel() {
  const about = ({ rows, keys }) => {
    if (!translates) return "text looks at itself";
    return rows === keys ? `${rows} looks at itself` : `${rows} looks at ${keys}`;
  };
  drawAllHeads(byId("model"), KINDS, model.heads, about, thumbnail);
}

function thumbnail(kind, layer, head) {
  const weights = value(`${kind.path(layer)}.weights`)[head];
  const at = { kind: kind.name, layer, head };
  const changed = ["head", "key", "score"].some((type) => changesOf(type, at).length);
  const off = changesOf("head", at).length > 0;
  const button = headPicture(
    weights,
    { ...at, rowName: (t) => rowName(kind.rows, t), keyName: (s) => words(kind.keys)[s] },
    {
      pressed: state.kind === kind && state.layer === layer && state.head === head,
      itself: kind.rows === kind.keys,
      hidden: (t, s) => isHidden(kind, t, s),
      condition: off ? "off" : changed ? "changed" : "",
    },
    () => {
      select({ kind, layer, head });
      return byId("inside-title");
    },
  );
  button.classList.toggle("off", off);
  return button;
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
    " with the one of ",
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
