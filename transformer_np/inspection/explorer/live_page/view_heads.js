// The map of the model: every head of every layer as a small picture, layers from the bottom to the top.

function drawHeads() {
  const all = (kind, layer) => Array.from({ length: H }, (_, head) => thumbnail(kind, layer, head));
  const pictures = KINDS.map((kind) => Array.from({ length: kind.layers }, (_, layer) => all(kind, layer)));
  if (byId("model").hasChildNodes()) return; // the buttons are the same ones each time
  const blocks = KINDS.map((kind, k) => {
    const rows = pictures[k].map((heads, layer) => {
      const about = { class: "layer", role: "group", "aria-label": `${kind.title}, layer ${layer + 1}` };
      return element("div", about, element("span", { "aria-hidden": "true" }, `layer ${layer + 1}`), ...heads);
    });
    const looks = translates ? `${kind.rows} looks at ${kind.rows === kind.keys ? "itself" : kind.keys}` : "";
    const title = element("h3", {}, capital(kind.title), " ", element("small", {}, looks));
    return element("section", { class: "kind", "aria-label": kind.title }, title, ...rows.reverse());
  });
  byId("model").classList.toggle("many", H > 8 || KINDS.some(({ layers }) => layers > 6));
  byId("model").replaceChildren(...blocks);
}

function thumbnail(kind, layer, head) {
  const weights = value(`${kind.path(layer)}.weights`)[head];
  const at = { kind: kind.name, layer, head };
  const key = `${kind.name} ${layer} ${head}`;
  const off = changesOf("head", at).length > 0 || state.changes.some(({ name }) => name === `${kind.path(layer)}.out`);
  const changed = ["uniform", "key", "score"].some((type) => changesOf(type, at).length);
  const [remark, mark] = off ? [", off", " off"] : changed ? [", changed", " *"] : ["", ""];
  const pressed = state.kind === kind && state.layer === layer && state.head === head;
  const label = `layer ${layer + 1}, head ${head + 1}${remark}: ${strongest(weights, kind)}`;
  const canvas = canvasOf(key);
  paint(canvas, weights, { signed: false, causal: isCausal(kind) });
  const open = (event) => {
    select({ kind, layer, head, column: 0, step: IN_HEAD.includes(state.step) ? state.step : "weights" });
    const below = byId("step-title").getBoundingClientRect().top > 0.75 * innerHeight;
    if (event.detail && below) byId("step-title").scrollIntoView(); // of a pointer; the keyboard stays where it is
  };
  const button = sameButton(key, "thumb", open, () => [canvas, element("span", {}, "")]);
  update(button, { title: label, ariaLabel: label, ariaPressed: String(pressed), tabIndex: pressed ? 0 : -1 });
  update(button.lastChild, { textContent: `${head + 1}${mark}` });
  button.classList.toggle("off", off);
  return button;
}

// The pair of different words with the largest weight, in words.
function strongest(weights, { rows, keys }) {
  let [best, at] = [-1, [0, 0]];
  weights.data.forEach((weight, i) => {
    if (weight <= best) return;
    const [t, s] = [Math.floor(i / weights.columns), i % weights.columns];
    if (rows !== keys || t !== s) [best, at] = [weight, [t, s]];
  });
  return best < 0 ? "only itself" : `${words(rows)[at[0]]} looks at ${words(keys)[at[1]]}, weight ${rounded(best)}`;
}
