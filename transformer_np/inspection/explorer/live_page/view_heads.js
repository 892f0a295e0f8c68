// The map of the model: every head of every layer as a small picture, layers from the bottom to the top.

function drawHeads() {
  const about = ({ rows, keys }) =>
    !translates ? "" : rows === keys ? `${rows} looks at itself` : `${rows} looks at ${keys}`;
  drawAllHeads(byId("model"), KINDS, model.heads, about, thumbnail);
}

function thumbnail(kind, layer, head) {
  const weights = value(`${kind.path(layer)}.weights`)[head];
  const at = { kind: kind.name, layer, head };
  const changed = ["head", "uniform", "key", "score"].some((type) => changesOf(type, at).length);
  const off = changesOf("head", at).length > 0 || state.changes.some(({ name }) => name === `${kind.path(layer)}.out`);
  const button = headPicture(
    weights,
    { ...at, rowName: (t) => words(kind.rows)[t], keyName: (s) => words(kind.keys)[s] },
    {
      pressed: state.kind === kind && state.layer === layer && state.head === head,
      itself: kind.rows === kind.keys,
      causal: isCausal(kind),
      condition: off ? "off" : changed ? "changed" : "",
    },
    () => {
      select({ kind, layer, head, column: 0, step: IN_HEAD.includes(state.step) ? state.step : "weights" });
      return byId("step-title");
    },
  );
  button.classList.toggle("off", off);
  return button;
}
