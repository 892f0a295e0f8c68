// Lessons: steps that drive the page, each with a text, and where it helps a prediction before the page shows what
// happens. data.lessons: [{ title, tries, words, matrices, steps: [{ title, text, question, answers, right, why, before, after }] }]
// before: commands as the step begins; after: commands when the prediction is made.
//
// A command `see` is a claim. Before a lesson is offered, it is rehearsed with the text at hand and with others, until the
// page's own numbers show all its claims; a step whose claims hold for no text is left out.

// The commands of a lesson: what they do to the state. The page is drawn once, after all of them.
const COMMANDS = {
  text: (words) => take(words),
  open: (words) => {
    state.worked = null;
    for (const word of words.split(/\s+/)) {
      const kind = KINDS.find(({ name }) => name === word);
      const [, part, number] = word.match(/^(layer|head|row|column)=(\d+|last|target|equal)$/) ?? [];
      const n = number === "last" ? Infinity : Number(number) - 1;
      if (kind) Object.assign(state, { kind, layer: Math.min(state.layer, kind.layers - 1) });
      else if (part === "layer") state.layer = Math.min(n, state.kind.layers - 1);
      else if (part === "head") state.head = Math.min(n, H - 1);
      else if (part === "row") state.place[state.kind.rows] = state.place.own = { target: scored, equal: () => twins()?.[0] ?? 0 }[number]?.() ?? n;
      else if (part) state.column = n;
      else if (!["encoder", "decoder", "cross"].includes(word)) state.step = word === "norm" ? normHere() : word;
    }
  },
  show: (name) => (state.show = name),
  change: (words) => {
    const [type, ...where] = words.split(/\s+/);
    const at = here();
    for (const word of where) {
      const kind = KINDS.find(({ name }) => name === word);
      const [, part, number] = word.match(/^(layer|head|key)=(\d+|all)$/) ?? [];
      if (kind) at.kind = kind.name;
      else if (part) at[part] = number === "all" ? null : Number(number) - 1;
    }
    const kind = KINDS.find(({ name }) => name === at.kind);
    const name = where.includes("feed_forward") ? `${kind.block(at.layer)}.feed_forward.out` : `${kind.path(at.layer)}.out`;
    if (type in SWITCHES) state.changes.push({ type });
    else if (type === "off") state.changes.push({ type, name });
    else state.changes.push({ type, ...at, ...(type === "key" ? { word: words(kind.keys)[at.key] } : {}) });
  },
  best: (words) => {
    const found = bestChange(words);
    lookAt(found);
    state.changes.push(found);
  },
  undo: () => (state.changes = []),
  choose: (words) => {
    const given = Object.fromEntries(words.split(/\s+/).map((word) => word.split("=")));
    const number = (name, other) => Number(given[name] ?? other);
    Object.assign(state.how, { temperature: words === "greedy" ? 0 : number("temperature", 1), topK: number("top-k", 0), topP: number("top-p", 1) });
    state.fixed = [];
  },
  write: (count) => (state.steps = count === "all" ? (translates ? null : MORE) : Number(count)),
  sgd: () => takeStep(),
  trained: () => asTrained(),
  product: (words) => {
    const [formula, row] = words.split(" row=");
    state.worked = formula === "none" ? null : workedStep(lessons()[lesson.at], formula);
    Object.assign(state, { column: 0 }).place.own = row ? row - 1 : 0;
  },
  see: () => {},
};
const CHANGING = ["change", "best", "sgd", "choose", "undo", "open", "product", "show", "write"]; // what is seen

// Open the step that a change belongs to.
function lookAt(change) {
  if (change.type === "head") {
    const kind = KINDS.find(({ name }) => name === change.kind);
    return Object.assign(state, { kind, layer: change.layer, head: change.head, step: "weights", column: 0 });
  }
  const [stack, layer, part] = change.name.split(".");
  const kind = KINDS.find((each) => each.stack === stack && [each.part, "feed_forward"].includes(part)) ?? state.kind;
  return Object.assign(state, { kind, layer: Number(layer), step: part === "feed_forward" ? "ffn" : "out", column: 0 });
}

const normHere = () => flow().flatMap(({ steps }) => steps).find(({ id }) => /^norm[1-9]/.test(id)).id;

// The last row whose target counts; of an encoder's text the last row
function scored() {
  if (state.kind.rows === "source" || !model.speaks) return Infinity;
  const wanted = targets();
  return CLASSES ? 0 : wanted.findLastIndex((id) => id !== null);
}
// The first two positions with the same word, or null
function twins() {
  const side = state.kind.rows;
  const ids = side === "source" ? source() : result.given;
  const second = ids.findIndex((id, i) => id !== reader.unknown && ids.indexOf(id) < i);
  return second < 0 ? null : [ids.indexOf(ids[second]), second];
}

// Do the commands of a lesson. What follows from the text and the changes is computed where a command asks for it.
// checks: whether claims are checked  ->  whether all of them hold
function obey(commands, checks = false) {
  let fresh = false;
  for (const [name, words] of commands) {
    const asks = name === "open" ? /target|equal|norm/.test(words) : name === "see" ? checks : ["change", "best", "sgd"].includes(name);
    if (asks && !fresh) compute();
    fresh = asks ? ["open", "see"].includes(name) : fresh && ["open", "show", "see"].includes(name);
    COMMANDS[name](words);
    const asked = state.step;
    if (checks && name === "open" && openStep(flow()).step.id !== asked) return false; // a step that this model lacks
    if (name === "see" && checks && !CLAIMS[words]()) return false;
  }
  return true;
}
function compute() {
  result = finished(decoding(state.changes, state.fixed, result));
  unchanged = state.changes.length ? runUnchanged() : result;
}

// --- claims ----------------------------------------------------------------------------------------------------------

// The step that is open, the chosen row of its matrix, now and without the changes
function inSight() {
  const step = state.worked ?? openStep(flow()).step;
  const get = (values) => step.result.get(values);
  const i = rowIn(step, get(result.values));
  const slope = () => step.result.gradient(gradients())?.row(i) ?? [];
  return { step, get, i, row: get(result.values).row(i), before: () => get(teacherForced(result, [])).row(i), slope };
}
const most = (row) => Math.max(...row);
const sum = (row) => row.reduce((a, b) => a + b, 0);
const count = (row) => row.filter((x) => x > 0).length;
const spread = (row) => Math.sqrt(sum(row.map((x) => (x - sum(row) / row.length) ** 2)) / row.length);
const spreads = (matrix) => Array.from({ length: matrix.rows }, (_, i) => spread(matrix.row(i)));
const twinRows = () => twins()?.map((i) => inSight().get(result.values).row(i));
const alike = ([a, b]) => a.every((x, i) => Math.abs(x - b[i]) < 1e-9);
const splitOf = ({ values }) => contributions(model, values, wrote(place("target")), place("target"));
const CLAIMS = {
  "loss rises": () => {
    const { before, after } = effectOf(unchanged.values, teacherForced(unchanged, expanded(state.changes)));
    return after > 1.01 * before + 0.001;
  },
  "loss falls": () => training.taken.length > 0 && gradients().loss < training.taken.at(-1).loss - 0.0005,
  "the gradient is not 0": () => largestOf(inSight().slope()) > 1e-6,
  "the gradients of the row add up to 0": () => Math.abs(sum(inSight().slope())) < 1e-9,
  "the row adds up to 1": () => Math.abs(sum(inSight().row) - 1) < 1e-9,
  "the row has one weight": () => count(inSight().row) === 1,
  "the row sees more": () => count(inSight().row) > count(inSight().before()),
  "the largest weight rises": () => most(inSight().row) > most(inSight().before()) + 0.005,
  "the row is nearly equal": () => most(inSight().row) < 1.5 * Math.min(...inSight().row),
  "the row's own is largest": () => inSight().row.indexOf(most(inSight().row)) === inSight().i,
  "some of the row are 0": () => count(inSight().row) < inSight().row.length && inSight().row.includes(0),
  "the rows get one size": () => {
    const { step, get } = inSight();
    const ratio = (all) => most(all) / Math.min(...all);
    return ratio(spreads(get(result.values))) < ratio(spreads(step.factors[0].get(result.values)));
  },
  "two equal words": () => twins() !== null,
  "equal rows": () => twins() !== null && alike(twinRows()),
  "different rows": () => twins() !== null && !alike(twinRows()),
  "the longest grows": () => most(inSight().row) > most(inSight().get(result.values).row(0)) + 0.0005,
  "k are left": () => count(inSight().row) === state.how.topK,
  "the parts add up to the logit": () => {
    const { logit, embedding, heads, feedForwards, biases } = splitOf(result);
    return Math.abs(embedding + heads + feedForwards + biases - logit) < 1e-6 * (1 + Math.abs(logit));
  },
  "the logit changes by another amount": () => {
    const [before, after] = [unchanged, result].map(splitOf);
    const { kind, layer, head } = state.changes[0];
    const kinds = KINDS.filter(({ rows }) => rows === "target").map(({ name }) => name);
    const added = before.parts[layer * kinds.length + kinds.indexOf(kind)].heads[head];
    return Math.abs(before.logit - added - after.logit) > 0.02;
  },
};

// Do something and put everything back: nothing is drawn in between  ->  what it returns
function rehearsed(act) {
  const kept = { ...state, place: { ...state.place }, how: { ...state.how }, changes: [...state.changes] };
  const [weights, trained, at, runs] = [model.weights, { ...training }, { ...lesson }, [result, unchanged]];
  try {
    return act();
  } finally {
    Object.assign(state, kept);
    model.weights = weights;
    Object.assign(training, trained);
    Object.assign(lesson, at);
    [result, unchanged] = runs;
  }
}

// Whether the claims of a step hold
const holds = ({ before, after }) => rehearsed(() => obey([...RESET, ...before, ...after], true));

const FIRST = `${KINDS.at(-1).name} weights layer=1 head=1 row=last column=1`;
const RESET = [["undo"], ["trained"], ["choose", "greedy"], ["show", "value"], ["product", "none"], ["open", FIRST]];
const TRIED = 8; // examples for each lesson

// Find the text that shows most steps of a lesson, and for each other step the first text that shows it. One text at each
// call of next()  ->  [{ step, text }] of the steps that are shown
function* rehearsal(at) {
  const { steps, tries } = lessons()[at];
  const mine = lesson.own ?? state.text;
  const texts = data.large ? [mine] : [mine, ...data.examples.slice(0, TRIED), ...tries, `${mine} ${mine}`];
  const first = new Map();
  let best = [];
  for (const text of new Set(texts)) {
    const held = rehearsed(() => {
      Object.assign(lesson, { at, step: 0 });
      obey([["text", text]]);
      if (state.text !== text || (text !== mine && state.pieces.some(({ id }) => id === reader.unknown))) return [];
      compute();
      const missing = steps.filter((step) => !first.has(step) && holds(step)); // the others only where these are shown
      return steps.filter((step) => missing.includes(step) || (missing.length && first.has(step) && holds(step)));
    });
    for (const step of held) if (!first.has(step)) first.set(step, text);
    if (held.length > best.length) best = held.map((step) => [step, text]);
    if (best.length === steps.length) break;
    yield;
  }
  const found = new Map([...first, ...best]);
  const proves = (step) => [...step.before, ...step.after].some(([name]) => name === "see");
  const proved = !steps.some(proves) || steps.some((step) => proves(step) && found.has(step));
  return steps.filter((step) => proved && found.has(step)).map((step) => ({ step, text: found.get(step) }));
}

// --- the walk --------------------------------------------------------------------------------------------------------

// The lessons, and before them a walk through every step of the first layers, and back.
let walk = null;
const lessons = () => [(walk ??= { title: "A walk through every step", walk: true, tries: [], steps: walkSteps() }), ...data.lessons];
function walkSteps() {
  const found = [];
  const step = (title, text, ...before) => found.push({ title, text: [text], question: "", answers: [], right: null, why: "", before, after: [] });
  const { frequencies, slopes, gated } = data.config;
  const variants = Object.entries({ class: CLASSES, masked: fills, turned: frequencies, alibi: slopes, gated }).flatMap(([name, is]) => (is ? [name] : []));
  const textOf = (id, ...more) => [...more, ...variants].map((name) => data.walk[`${id} ${name}`]).find(Boolean) ?? data.walk[id];
  const plain = (id) => id.replace(/\d+$|-last$/, "");
  let last;
  rehearsed(() => {
    const stacks = [...new Set(KINDS.map(({ stack }) => stack))];
    for (const stack of stacks) {
      Object.assign(state, { kind: KINDS.find((kind) => kind.stack === stack), layer: 0, worked: null });
      last = state.kind;
      for (const row of flow())
        for (const { id, title } of row.steps) {
          const { name, title: of, rows, keys } = row.kind ?? state.kind;
          const text = textOf(plain(id), ...(row.kind && rows !== keys ? ["cross"] : []));
          if (!text) continue;
          const where = row.kind ? capital(of) : stacks.length > 1 ? `${capital(stack)}: ${row.title.toLowerCase()}` : row.title;
          step(`${where}: ${title}`, text, ["show", "value"], ["open", `${name} ${id} layer=1 head=1 row=target`]);
        }
    }
  });
  const back = Object.keys(data.walk).filter((key) => model.speaks && key.startsWith("back "));
  for (const key of back) {
    const id = key.slice(5);
    const known = found.findLast(({ before: [, [, words]] }) => words.split(" ")[1] === id);
    if (known) step(`Back: ${known.title}`, data.walk[key], ["open", known.before[1][1]], ["show", "gradient"]);
  }
  return found;
}

// A step with the lesson's own matrices, from a formula such as "S = Q · Kᵀ / √4" or "A = softmax S".
function workedStep(all, formula) {
  const [symbol, right] = formula.split(" = ");
  const matrices = new Map(
    Object.entries(all.matrices).map(([name, rows]) => [
      name,
      new Matrix(rows.length, rows[0].length, Float64Array.from(rows.flat())),
    ]),
  );
  const found = (name) => {
    const plain = name.replace("ᵀ", "");
    if (!matrices.has(plain)) {
      const made = all.steps
        .flatMap(({ before }) => before)
        .find(([command, words]) => command === "product" && words.startsWith(`${plain} = `));
      matrices.set(plain, computedFrom(made[1].split(" row=")[0].split(" = ")[1]));
    }
    return name === plain ? matrices.get(plain) : matrices.get(plain).transposed;
  };
  const computedFrom = (terms) => {
    if (terms.startsWith("softmax ")) return softmaxRows(found(terms.slice(8)));
    const [left, , factor, , root] = terms.split(" ");
    return linear(found(left), found(factor)).map((x) => x / (root ? Math.sqrt(Number(root.slice(1))) : 1));
  };
  const part = (name, matrix) => computed(name, () => matrix);
  const result = part(symbol, computedFrom(right));
  const square = ["S", "A"].includes(symbol);
  const shared = {
    formula,
    rows: "own",
    words: all.words,
    columns: square ? all.words : undefined,
    axes: square ? ["query", "key"] : ["word", "feature"],
  };
  if (right.startsWith("softmax ")) {
    const S = part(right.slice(8), found(right.slice(8)));
    const cell = (i, j) =>
      `${cellName(symbol, i, j)} = e^${rounded(S.get().at(i, j))} / Σ e^S of the row = ${rounded(result.get().at(i, j))}`;
    const title = "Softmax of each row";
    return step("worked", symbol, title, formula, "own", result, cell, { ...shared, sign: ["→ softmax →"], factors: [S] });
  }
  const [left, , factor, , root] = right.split(" ");
  const divide = root ? Math.sqrt(Number(root.slice(1))) : 1;
  const given = { ...shared, left: part(left, found(left)), right: part(factor, found(factor)), result, divide };
  return product("worked", symbol, "A product of matrices", formula, given);
}
