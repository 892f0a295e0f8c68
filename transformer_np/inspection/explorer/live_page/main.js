// The page: what is drawn when, and the words that depend on the kind of model.

// Choose what is looked into: { kind, layer, head, step, column, show } and the rows { source, target }.
function select({ source, target, own, ...chosen }) {
  if (own !== undefined) state.place.own = own;
  if (source !== undefined) state.place.source = source;
  if (target !== undefined) state.place.target = target;
  Object.assign(state, chosen);
  draw();
}

function draw() {
  drawText();
  drawEffect();
  drawInside();
}

function drawInside() {
  if (onStage()) {
    const { row, step } = openStep(flow());
    drawStep(row, state.worked ?? step);
  } else {
    drawChanges();
    drawHeads();
    drawFlow();
    rank();
  }
  writeAddress();
}

function nameEverything() {
  const title = `A living ${translates ? "translator" : CLASSES ? "classifier" : fills ? "BERT" : data.kind}`;
  byId("title").textContent = document.title = title;
  byId("text-title").textContent = translates ? "Sentence" : fills ? "Text" : "Beginning";
  byId("reads").hidden = !translates;
  byId("writes-title").textContent = translates ? "writes" : "reads";
  byId("restart").textContent = fills ? "Show all again" : "Start over";
  byId("next").textContent = fills ? `Mask this ${UNIT}` : `Next ${UNIT}`;
  byId("finish").textContent = translates ? "To the end" : `${MORE} more`;
  byId("finish").hidden = byId("who").hidden = fills;
  for (const id of ["restart", "next"]) byId(id).hidden = fills && !(model.speaks && MASK !== null);
  byId("choosing").hidden = fills;
  byId("switch-mask").parentElement.hidden = fills;
  if (CLASSES) byId("target").parentElement.firstChild.textContent = "target class ";
  if (!model.speaks) byId("try-title").textContent = "Try these: without it, the text’s vector turns by";
  const parameters = data.parameters.toLocaleString("en");
  const heads = `${model.heads} head${model.heads === 1 ? "" : "s"}`;
  byId("foot").textContent =
    `${parameters} parameters in ${data.format}, ${data.config.d_model} features, ${heads}. The page computes ` +
    "forward and backward in this browser and asks for nothing from a network.";
  byId("vocabulary").replaceChildren(
    ...OUTCOMES.slice(CLASSES || writer.kind === "pretrained" ? 0 : UNK + 1, 3000).map((word) =>
      element("option", { value: visible(word) }),
    ),
  );
}

// A large model is loaded when the reader agrees: until then the page needs little more memory than its file has.
function agreed() {
  const [count, size] = [data.parameters / 1e6, data.memory / 1e9];
  byId("memory").textContent = `This model has ${count.toFixed(0)} million parameters. Your browser needs about ${size.toFixed(1)} GB of memory for it.`;
  byId("loading").hidden = false;
  document.querySelector("main").hidden = true;
  return new Promise((load) => byId("load").addEventListener("click", load));
}

async function begin() {
  if (data.large) {
    await agreed();
    byId("memory").textContent = "Unpacking the model …";
    await new Promise((shown) => setTimeout(shown, 50));
  }
  model = modelFrom({ ...data, separator: reader.ids?.get("[SEP]") }, await parametersFrom(data));
  byId("loading").hidden = true;
  document.querySelector("main").hidden = false;
  nameEverything();
  readColours();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    readColours();
    draw();
  });
  addEventListener("resize", () => result && draw());
  listenToText();
  listenToFlow();
  listenToChanges();
  listenToTraining();
  listenToResidual();
  listenToStage();
  listenToWords();
  addEventListener("hashchange", () => location.hash !== address && readAddress());
  moveWithArrows(byId("model"), () => model.heads);
  byId("remark").textContent = take(state.text);
  state.fixed = data.written ?? [];
  if (fills && model.speaks && MASK !== null)
    state.masked = [(state.place.target = Math.floor(state.pieces.length / 2))];
  if (!readAddress()) run();
  const found = {
    model,
    reader,
    writer,
    decode,
    seen,
    choose,
    distribution,
    backward,
    crossEntropy,
    state,
    take,
    run,
    gradients,
    goTo,
    lesson,
    lessons,
    contributions,
    shown,
    written,
    drawn: () => drawnLast,
  };
  globalThis.live = { ...found, result: () => result, ranking: () => ranking }; // for the console
}
begin();
