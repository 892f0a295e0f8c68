// What is chosen on the page, and what follows from it: the run of the model, with and without the changes.

let model; // set in main.js, when the weights are unpacked
const translates = data.kind === "Transformer";
const fills = data.kind === "Bert"; // it reads the whole text, and guesses the tokens that are masked
const [reader, writer] = [data.tokenizers[0], data.tokenizers.at(-1)].map(tokenizerFrom);
const seen = new Seen(data.seen);
const END = translates ? data.config.eos_id : null;
const CONTEXT = Math.min(data.config.max_len, data.most); // more tokens would not be readable
const UNIT = { word: "word", char: "character" }[writer.kind] ?? "token";
const CLASSES = data.classes ?? null; // of a classifier, which gives the whole text one of them: their names
const MASK = (fills && !CLASSES ? reader.ids?.get("[MASK]") : null) ?? null; // its id
const OUTCOMES = CLASSES ?? writer.vocabulary;
const readsUnknown = translates || fills || reader.kind === "pretrained";
const H = data.config.num_heads;

// The kinds of attention. rows, keys: which words they belong to; path(layer): the name of the layer; stack: of its block
function kindOf(name, title, layers, rows, keys, stack, part) {
  const block = (i) => `${stack}.${i}`;
  return { name, title, layers, rows, keys, stack, part, block, path: (i) => `${block(i)}.${part}` };
}
const { num_encoder_layers: E, num_decoder_layers: D, num_layers: L } = data.config;
const KINDS = translates
  ? [
      kindOf("encoder", "encoder self-attention", E, "source", "source", "encoder", "attention"),
      kindOf("decoder", "decoder self-attention", D, "target", "target", "decoder", "self_attention"),
      kindOf("cross", "cross-attention", D, "target", "source", "decoder", "cross_attention"),
    ].filter((each) => each.layers > 0)
  : [kindOf(fills ? "encoder" : "decoder", "self-attention", L, "target", "target", "blocks", "attention")];

const NEWEST = CLASSES ? 0 : Infinity; // a classifier's first row is [CLS], which it reads

const state = {
  text: data.text,
  pieces: [], // of the text: { piece, id }
  fixed: [], // the tokens that the reader of the page has chosen by hand, from the first step on
  masked: [], // the positions that are masked here
  steps: translates ? null : 0, // how many tokens are written; null: up to the end token
  how: { temperature: 0, topK: 0, topP: 1, seed: 1 },
  kind: KINDS.at(-1),
  layer: KINDS.at(-1).layers - 1,
  head: 0,
  place: { source: 0, target: NEWEST, own: 0 }, // the chosen row; own: of a matrix whose rows are not words
  column: 0, // of the matrix that is open
  step: "weights", // the step of the computation that is open
  show: "value",
  lines: "", // "head" or "all": attention as lines between words, of one head or of all
  target: null, // { row, id }: the word that the loss expects there, if it is not the next one of the text
  worked: null, // a step with the matrices of a lesson, in place of the one that is open
  changes: [],
};
let result = null; // of decoding, with the changes: { chosen, given, values, … }
let unchanged = null; // the same without the changes: the result itself if there are none

// --- the text --------------------------------------------------------------------------------------------------------

// Take a text; returns what is to be said about it. A text that cannot be read leaves the last one in place.
function take(typed) {
  const text = seen.fold(typed);
  const pieces = reader.encode(text);
  const unknown = [...new Set(pieces.filter(({ id }) => id === reader.unknown).map(({ piece }) => piece))];
  if (!pieces.length) return "Type something: the text is empty.";
  if (unknown.length && !readsUnknown) return `The model has never seen ${unknown.map(quoted).join(", ")}.`;
  if ((translates || fills) && pieces.length > CONTEXT)
    return `${pieces.length} tokens are too many for this page: at most ${CONTEXT}.`;
  const same = pieces.length === state.pieces.length && pieces.every(({ id }, i) => id === state.pieces[i].id);
  if (!same) state.changes = state.changes.filter(({ position, key }) => position === undefined && key === undefined);
  Object.assign(state, { text, pieces, fixed: same ? state.fixed : [] });
  if (!same) Object.assign(state, { target: null, steps: translates ? state.steps : 0 });
  if (!same) Object.assign(state, { masked: [] }).place.target = NEWEST;
  if (unknown.length && reader.kind === "pretrained") return "The model reads [UNK] for what it does not know.";
  if (unknown.length) return `The model does not know ${unknown.map(quoted).join(", ")} and reads <unk>.`;
  if (pieces.length > CONTEXT) return `${pieces.length} tokens: the model reads the last ${CONTEXT}.`;
  const outside = seen.outside(text, !translates && !fills && !CLASSES);
  if (!outside.length) return "";
  const count = `${seen.words.length.toLocaleString("en")} words`;
  const other = data.examples.length ? " “Another” types a text that it can read." : "";
  return `Expect mistakes: the model has seen ${count}, listed below, and not ${outside.map(quoted).join(", ")}.${other}`;
}

const source = () => state.pieces.map(({ id }, t) => (state.masked.includes(t) ? MASK : id));
const prompt = () => (translates ? [data.config.bos_id] : source().slice(-CONTEXT));
const tokenOf = (id) => visible(writer.vocabulary[id]);
const outcomeOf = (id) => (CLASSES ? CLASSES[id] : tokenOf(id)); // what has a score: a class, or else a token
const scoredRow = (t) => (CLASSES ? 0 : t); // the row of the scores that belongs to a row of the text

// The words of a side: of the source as typed, of the target as read by the decoder.
function words(side) {
  return side === "source" ? state.pieces.map(({ piece }) => visible(piece)) : result.given.map(tokenOf);
}
const isOver = (run = result) => run.unread > 0;
const firstRow = () => result.given.length - 1 - (result.chosen.length - result.unread); // the row of the first step

// The token after each row of the target, null where none is chosen yet.
const following = (run = result) =>
  fills
    ? run.given.map((_, t) => (state.masked.includes(t) ? state.pieces[t].id : null)) // a BERT guesses what is masked
    : [...run.given.slice(1), isOver(run) ? run.chosen.at(-1) : null];
const place = (side = state.kind.rows) => Math.min(state.place[side], words(side).length - 1);
const path = () => state.kind.path(state.layer);
const value = (name) => result.values[name];
const isCausal = (kind) => !fills && kind.keys === "target" && !state.changes.some(({ type }) => type === "mask");

// --- the run ---------------------------------------------------------------------------------------------------------

// The changes as the model takes them: those for several heads or layers are several.
function expanded(changes) {
  return changes.flatMap((change) => {
    if (change.kind === undefined) return [change];
    const kind = KINDS.find(({ name }) => name === change.kind);
    const layers = change.layer === null ? Array.from({ length: kind.layers }, (_, i) => i) : [change.layer];
    const heads = change.head === null ? Array.from({ length: model.heads }, (_, i) => i) : [change.head];
    return layers.flatMap((layer) => heads.map((head) => ({ ...change, path: kind.path(layer), head })));
  });
}

function decoding(changes, known, before, src = source(), given = prompt()) {
  const steps = state.steps ?? Math.max(known.length, Math.min(CONTEXT, 2 * src.length + 10));
  const options = { known, steps, how: state.how, end: END, longest: CONTEXT, changes: expanded(changes), before };
  return decode(model, src, given, options);
}

function finished(steps) {
  let found;
  for (found of steps);
  return found;
}

// The run without the changes; a dragged score does not make it again.
let last = {};
function runUnchanged() {
  const key = JSON.stringify([source(), state.fixed, state.steps, state.how]);
  if (last.key !== key || last.run.weights !== model.weights)
    last = { key, run: finished(decoding([], state.fixed, last.run)) };
  return last.run;
}

// The values of the changed (or unchanged) model for the text of a run, which is given to it word by word.
function teacherForced(run, changes) {
  if (JSON.stringify(run.changes) === JSON.stringify(changes)) return run.values;
  const same = run.changes.length || run.weights !== model.weights ? null : run;
  const encoded = same && untouched(changes, "decoder") !== null ? run.encoded : model.encode?.(run.src, changes);
  return model.forward(encoded, run.given, changes, null, same?.values);
}

let running = 0;
const waiting = []; // for the page to be drawn

// Run the model and draw the page. A long text is written in sight, a step at a time, as long as nothing else is asked
// for. known: the tokens that are there already
function run(known = state.fixed) {
  const turn = ++running;
  const steps = decoding(state.changes, known, result);
  const go = () => {
    if (turn !== running) return;
    const began = performance.now();
    let found;
    do {
      found = steps.next();
      if (!found.done) result = found.value;
    } while (!found.done && performance.now() - began < TURN);
    drawText();
    if (!found.done) return void setTimeout(go, 0);
    if (!state.changes.length) last = { key: null, run: result };
    unchanged = state.changes.length ? runUnchanged() : result;
    drawEffect();
    setTimeout(drawRest, 0); // a keystroke is answered before the matrices are drawn
  };
  const drawRest = () => {
    if (turn !== running) return;
    drawInside();
    document.documentElement.dataset.ready = turn;
    for (const tell of waiting.splice(0)) tell();
  };
  document.documentElement.dataset.ready = "";
  go();
}
const TURN = 60; // ms, after which the browser may do something else

// --- the backward pass -----------------------------------------------------------------------------------------------

// The word that the loss expects after each row: the next one of the text, or the one that is chosen here.
function targets(run = result) {
  if (CLASSES) return [state.target?.id ?? best(run, 0)];
  const found = following(run);
  const { target } = state;
  if (target && target.row < found.length) found[target.row] = target.id;
  if (found.every((id) => id === null)) {
    const t = fills ? place("target") : found.length - 1;
    found[t] = best(run, t);
  }
  return found;
}
const best = (run, t) => ranked(model.writable(run.values["output.out"].row(scoredRow(t))), 1)[0].id;

// { loss, targets, gradients, weights } of the text that is shown, with the changes; computed once for a run
let lastBackward = {};
function gradients() {
  const wanted = targets();
  const key = JSON.stringify(wanted);
  if (lastBackward.values !== result.values || lastBackward.key !== key) {
    const { loss, dlogits } = crossEntropy(result.values["output.out"], wanted);
    const { gradients, weights } = backward(model, result, dlogits);
    lastBackward = { values: result.values, key, loss, targets: wanted, gradients, weights };
  }
  return lastBackward;
}

// --- changes ---------------------------------------------------------------------------------------------------------

const here = () => ({ kind: state.kind.name, layer: state.layer, head: state.head });
const isAt = (change, { kind, layer, head }) =>
  change.kind === kind && [null, layer].includes(change.layer) && [null, head].includes(change.head);
const changesOf = (type, at = here()) => state.changes.filter((change) => change.type === type && isAt(change, at));

function change(made) {
  state.changes.push(made);
  run();
}
function undo(made) {
  state.changes = state.changes.filter((each) => each !== made);
  run();
}
// Make a change, or undo it if it is there already.
function toggle(made) {
  const same = state.changes.find((each) =>
    ["type", "kind", "layer", "head", "name"].every((key) => each[key] === made[key]),
  );
  if (same) undo(same);
  else change(made);
}
