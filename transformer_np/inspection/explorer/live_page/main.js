// The page: what is drawn when, the tabs, and the words that depend on the kind of model.

const TABS = {
  attention: { title: "Attention", draw: drawAttention },
  sum: { title: "Σ A·v → Wᴼ", draw: drawSum },
  residual: { title: "Residual stream", draw: drawResidual },
  ffn: { title: "Feed-forward", draw: drawFeedForward },
  lens: { title: "Logit lens", draw: drawLens },
};

// Choose what is looked into: { kind, layer, head, key } and the rows { source, target }.
function select({ source, target, ...chosen }) {
  if (source !== undefined) state.place.source = source;
  if (target !== undefined) state.place.target = target;
  Object.assign(state, chosen);
  draw();
}

function draw() {
  state.key = Math.min(state.key, words(state.kind.keys).length - 1);
  drawText();
  drawBefore();
  drawChanges();
  drawModel();
  byId("inside-title").textContent = `${capital(nameOf(here()))}`;
  drawTabs();
  TABS[state.tab].draw();
}

function drawTabs() {
  const tabs = Object.entries(TABS).map(([name, { title }]) => {
    const on = name === state.tab;
    const tab = choice(
      name,
      { here: on },
      () => {
        state.tab = name;
        draw();
      },
      title,
    );
    for (const [attribute, text] of Object.entries({
      id: `tab-${name}`,
      role: "tab",
      "aria-selected": on,
      "aria-controls": `panel-${name}`,
    }))
      tab.setAttribute(attribute, text);
    byId(`panel-${name}`).hidden = !on;
    return tab;
  });
  redraw(byId("tabs"), ...tabs);
}

const TEXTS = {
  Transformer: {
    title: "A living translator",
    about:
      "The trained encoder–decoder itself is in this page. Type a sentence, look inside, change a step and see " +
      "the translation change.",
    "text-title": "Sentence",
    "output-title": "Translation",
    next: `Next ${UNIT}`,
    finish: "To the end",
  },
  GPT: {
    title: "A living GPT",
    about:
      "The trained model itself is in this page. Type a beginning, look inside, change a step and see what it writes.",
    "text-title": "Beginning",
    "output-title": "Text",
    next: `Next ${UNIT}`,
    finish: `${MORE} more`,
  },
};

function nameEverything() {
  const texts = TEXTS[data.kind];
  for (const [id, text] of Object.entries(texts)) byId(id).textContent = text;
  document.title = texts.title;
  const { d_model: D } = data.config;
  const parameters = data.parameters.toLocaleString("en");
  byId("foot").textContent =
    `${parameters} parameters in ${data.format}, ${D} features, ${model.heads} heads. The page computes in this browser ` +
    "and asks for nothing from a network. When the text changes, heads stay off, and the other changes are undone.";
}

nameEverything();
readColours();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  draw();
});
listenToText();
listenToModel();
listenToAttention();
listenToSum();
listenToResidual();
moveWithArrows(byId("tabs"));
byId("remark").textContent = take(state.text);
run();

globalThis.live = { model, reader, writer, decode, choose, state, take, run, result: () => result }; // for the console
