// What is chosen on the page, and what follows from it: the run of the model, with and without the changes.

const model = modelFrom(data);
const translates = data.kind === "Transformer";
const [reader, writer] = [data.tokenizers[0], data.tokenizers.at(-1)].map(tokenizerFrom);
const END = translates ? data.config.eos_id : null;
const CONTEXT = Math.min(data.config.max_len, data.most); // more tokens would not be readable
const UNIT = { word: "word", char: "character", bpe: "token" }[writer.kind];

// The kinds of attention. rows, keys: which words they belong to; path(layer): the name of the layer
const KINDS = translates
  ? [
      {
        name: "encoder",
        title: "encoder self-attention",
        layers: data.config.num_encoder_layers,
        rows: "source",
        keys: "source",
        path: (i) => `encoder.${i}.attention`,
      },
      {
        name: "decoder",
        title: "decoder self-attention",
        layers: data.config.num_decoder_layers,
        rows: "target",
        keys: "target",
        path: (i) => `decoder.${i}.self_attention`,
      },
      {
        name: "cross",
        title: "cross-attention",
        layers: data.config.num_decoder_layers,
        rows: "target",
        keys: "source",
        path: (i) => `decoder.${i}.cross_attention`,
      },
    ].filter((each) => each.layers > 0)
  : [
      {
        name: "decoder",
        title: "self-attention",
        layers: data.config.num_layers,
        rows: "target",
        keys: "target",
        path: (i) => `blocks.${i}.attention`,
      },
    ];

const state = {
  text: data.text,
  pieces: [], // of the text: { piece, id }
  fixed: [], // the tokens that the reader of the page has chosen by hand, from the first step on
  steps: translates ? null : 0, // how many tokens are written; null: up to the end token
  temperature: 0,
  seed: 1,
  kind: KINDS.at(-1),
  layer: KINDS.at(-1).layers - 1,
  head: 0,
  place: { source: 0, target: Infinity }, // the chosen row; Infinity: the newest
  key: 0, // the chosen key
  show: "weight",
  tab: "attention",
  changes: [],
};
let result = null; // of decoding: { chosen, given, values }
let unchanged = null; // the same without the changes, if there are any

// --- the text --------------------------------------------------------------------------------------------------------

// Take a text; returns what is to be said about it. A text that cannot be read leaves the last one in place.
function take(text) {
  const pieces = reader.encode(text);
  const unknown = [...new Set(pieces.filter(({ id }) => id === UNK).map(({ piece }) => piece))];
  if (!pieces.length) return "Type something: the text is empty.";
  if (unknown.length && !translates) return `The model has never seen ${unknown.map(quoted).join(", ")}.`;
  if (translates && pieces.length > CONTEXT)
    return `${pieces.length} tokens are too many for this page: at most ${CONTEXT}.`;
  const same = pieces.length === state.pieces.length && pieces.every(({ id }, i) => id === state.pieces[i].id);
  if (!same) state.changes = state.changes.filter(({ type }) => type === "head"); // the others belong to a place
  Object.assign(state, { text, pieces, fixed: same ? state.fixed : [] });
  if (!same && !translates) state.steps = 0;
  if (!same) state.place.target = Infinity;
  if (unknown.length) return `The model does not know ${unknown.map(quoted).join(", ")} and reads <unk>.`;
  if (pieces.length > CONTEXT) return `${pieces.length} tokens: the model reads the last ${CONTEXT}.`;
  return "";
}

const source = () => state.pieces.map(({ id }) => id);
const prompt = () => (translates ? [data.config.bos_id] : source().slice(-CONTEXT));
const tokenOf = (id) => visible(writer.vocabulary[id]);

// The words of a side: of the source as typed, of the target as read by the decoder.
function words(side) {
  return side === "source" ? state.pieces.map(({ piece }) => visible(piece)) : result.given.map(tokenOf);
}
const isOver = () => result.unread > 0;
const firstRow = () => result.given.length - 1 - (result.chosen.length - result.unread); // the row of the first step

// The token after each row of the target, null where none is chosen yet.
const following = () => [...result.given.slice(1), isOver() ? result.chosen.at(-1) : null];
function rowName(side, i) {
  if (side === "source") return words("source")[i];
  const next = following()[i];
  return `→ ${next === null ? "…" : tokenOf(next)}`;
}

const place = (side = state.kind.rows) => Math.min(state.place[side], words(side).length - 1);
const path = () => state.kind.path(state.layer);
const value = (name) => result.values[name];
const isHidden = (kind, t, s) => kind.keys === "target" && s > t;

// --- the run ---------------------------------------------------------------------------------------------------------

// The changes as the model takes them: those for several heads or layers are several.
function expanded(changes) {
  return changes.flatMap((change) => {
    if (change.type === "replace") return [change];
    const kind = KINDS.find(({ name }) => name === change.kind);
    const layers = change.layer === null ? Array.from({ length: kind.layers }, (_, i) => i) : [change.layer];
    const heads = change.head === null ? Array.from({ length: model.heads }, (_, i) => i) : [change.head];
    return layers.flatMap((layer) => heads.map((head) => ({ ...change, path: kind.path(layer), head })));
  });
}

function decoding(changes, known, src = source(), given = prompt()) {
  const steps = state.steps ?? Math.min(CONTEXT, 2 * src.length + 10);
  const { temperature, seed } = state;
  return decode(model, src, given, {
    known,
    steps,
    temperature,
    seed,
    end: END,
    longest: CONTEXT,
    changes: expanded(changes),
  });
}

function finished(steps) {
  let found;
  for (found of steps);
  return found;
}

// The run without the changes; a dragged score does not make it again.
let last = {};
function runUnchanged() {
  const key = JSON.stringify([source(), state.fixed, state.steps, state.temperature, state.seed]);
  if (last.key !== key) last = { key, run: finished(decoding([], state.fixed)) };
  return last.run;
}

let running = 0;

// Run the model and draw the page. A long text is written in sight, a step at a time, as long as nothing else is asked
// for. known: the tokens that are there already
function run(known = state.fixed) {
  const turn = ++running;
  const steps = decoding(state.changes, known);
  const go = () => {
    if (turn !== running) return;
    const began = performance.now();
    let found;
    do {
      found = steps.next();
      if (!found.done) result = found.value;
    } while (!found.done && performance.now() - began < TURN);
    document.documentElement.dataset.ready = found.done ? turn : "";
    if (found.done) {
      unchanged = state.changes.length ? runUnchanged() : null;
      draw();
    } else {
      drawText();
      setTimeout(go, 0);
    }
  };
  go();
}
const TURN = 60; // ms, after which the browser may do something else

// The gradients of the text that the page began with: { dweight, dscore } of the chosen head, or null
const gradientArrays = new Map();
function gradients() {
  const found = data.gradients;
  const same = (a, b) => a.length === b.length && a.every((id, i) => id === b[i]);
  if (!found || state.changes.length || !same(source(), found.source)) return null;
  if (!same(result.given.slice(translates ? 1 : 0), found.target ?? found.source) || (translates && !isOver()))
    return null;
  const [T, S] = [words(state.kind.rows).length, words(state.kind.keys).length];
  const start = (state.layer * model.heads + state.head) * T * S;
  const ofHead = (name) => {
    const text = found.arrays[state.kind.name][name];
    if (!gradientArrays.has(text)) gradientArrays.set(text, numbersOf(text, "float32"));
    return new Matrix(T, S, gradientArrays.get(text).subarray(start, start + T * S));
  };
  return { dweight: ofHead("dweight"), dscore: ofHead("dscore") };
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
