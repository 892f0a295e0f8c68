// What is chosen, in the address: a link opens the same text, head, row and change, and a reload keeps them.

const NUMBERS = ["layer", "head", "column"];
function written() {
  const { text, kind, step, show, place: at, fixed, changes, how, steps, masked, lines } = state;
  const found = { text: onStage() ? lesson.own : text, at: kind.name, step, show };
  for (const name of NUMBERS) found[name] = state[name] + 1;
  for (const side of Object.keys(at)) if (Number.isFinite(at[side])) found[side] = at[side] + 1;
  const more = { lines, fixed, masked, changes, how: how.temperature ? how : "", steps: steps ?? "" };
  if (onStage()) more.lesson = [lesson.at, lesson.step, lesson.answered];
  for (const [name, what] of Object.entries(more))
    if (what.length !== 0) found[name] = typeof what === "string" ? what : JSON.stringify(what, plain);
  return `#${new URLSearchParams(found)}`;
}
const plain = (_, what) => (what instanceof Float64Array ? Array.from(what, (x) => Number(x.toPrecision(7))) : what);

let address = ""; // as it was written last
let writing = 0;
function writeAddress() {
  clearTimeout(writing); // whoever types is not held up
  writing = setTimeout(() => {
    address = written();
    try {
      history.replaceState(null, "", address);
    } catch {
      // a frame without an address of its own
    }
  }, 150);
}

// Take what an address says; what this model does not have is left out. Returns whether it said anything.
function readAddress() {
  const found = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (!("text" in found)) return false;
  byId("remark").textContent = take(found.text);
  byId("text").value = found.text;
  const list = (name) => {
    try {
      return JSON.parse(found[name]);
    } catch {
      return undefined;
    }
  };
  const kind = KINDS.find(({ name }) => name === found.at) ?? state.kind;
  const within = (name, count) => Math.max(0, Math.min(count - 1, (Number(found[name]) || 1) - 1));
  Object.assign(state, { kind, layer: within("layer", kind.layers), head: within("head", H), column: within("column", 1e6) });
  Object.assign(state, { step: found.step ?? state.step, show: found.show in SHOWN ? found.show : "value", lines: found.lines ?? "" });
  for (const side of Object.keys(state.place)) state.place[side] = side in found ? within(side, 1e6) : side === "target" ? NEWEST : 0;
  const known = (id) => Number.isInteger(id) && id >= 0 && id < writer.vocabulary.length;
  const ids = (name) => (Array.isArray(list(name)) ? list(name).filter(known) : []);
  Object.assign(state, { fixed: ids("fixed"), masked: fills ? ids("masked").filter((t) => t < state.pieces.length) : [] });
  const fits = (change) =>
    typeof change?.type === "string" && (!change.kind || KINDS.some(({ name }) => name === change.kind));
  const vector = (change) => (change.vector ? { ...change, vector: Float64Array.from(change.vector) } : change);
  state.changes = Array.isArray(list("changes")) ? list("changes").filter(fits).map(vector) : [];
  if (typeof list("how") === "object") Object.assign(state.how, list("how"));
  else state.how.temperature = 0;
  state.steps = Number.isInteger(list("steps")) ? Math.min(list("steps"), 200) : translates ? null : state.fixed.length;
  syncControls();
  const [at, step, answered] = Array.isArray(list("lesson")) ? list("lesson") : [null];
  if (Number.isInteger(at)) compute();
  if (Number.isInteger(at) && at < lessons().length) goTo(at, step, answered);
  else run();
  return true;
}
