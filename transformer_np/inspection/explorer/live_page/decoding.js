// One token after another: the next-word distribution, and the choice from it.

// The distribution that a token is drawn from: softmax(logits / temperature), restricted to the topK likeliest tokens and
// then to the likeliest that together just reach topP. Temperature 0 is greedy, and shows the distribution at temperature 1.
function distribution(logits, { temperature = 0, topK = 0, topP = 1 } = {}) {
  const probabilities = softmax(logits.map((value) => value / (temperature || 1)));
  if (!temperature || (!topK && topP >= 1)) return probabilities;
  const order = ranked(probabilities, topK || probabilities.length);
  const total = order.reduce((sum, { p }) => sum + p, 0);
  const kept = new Float64Array(probabilities.length);
  let before = 0; // the probability of all tokens ranked above this one
  order.forEach(({ id, p }, i) => {
    if (i === 0 || before < topP) kept[id] = p;
    before += p / total;
  });
  const sum = kept.reduce((a, b) => a + b, 0);
  return kept.map((p) => p / sum);
}

// A uniform number in [0, 1) that depends only on the seed and the step, so that a change of the model alone changes
// what is drawn (the finalizer of MurmurHash3).
function uniform(seed, step) {
  let x = (seed * 0x9e3779b1 + step * 0x85ebca6b) >>> 0;
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
}

// The likeliest token, the first of equally likely ones; or with a temperature one that is drawn.
function choose(logits, how, step) {
  if (!how.temperature) return logits.indexOf(logits.reduce((a, b) => Math.max(a, b)));
  const probabilities = distribution(logits, how);
  let rest = uniform(how.seed, step);
  const drawn = probabilities.findIndex((p) => (rest -= p) < 0);
  return drawn < 0 ? probabilities.indexOf(Math.max(...probabilities)) : drawn;
}

// Tokens with their probabilities, the likeliest first.
function ranked(probabilities, count) {
  let least = -Infinity; // of a large vocabulary, what cannot be among the first is not sorted
  let some = [];
  const first = () => some.sort((a, b) => b.p - a.p || a.id - b.id).splice(count);
  probabilities.forEach((p, id) => {
    if (p <= least) return;
    some.push({ p, id });
    if (some.length < 4 * count + 64) return;
    first();
    least = some.at(-1).p;
  });
  first();
  return some;
}

// Decode up to `steps` tokens behind the given ones, or until the end token, and yield the run after each forward:
//   chosen: the tokens, given: the ids that the decoder read, values: the intermediates
//   unread: how many of the chosen tokens it has not read: 1 for the last of all, which nothing follows
//   src, changes, encoded, weights: what they were computed with
// how: temperature, topK, topP, seed;  known: tokens that are chosen already;  before: an earlier run, whose beginning
// is not computed again;  longest: how many tokens the model reads at once
// end: the end token, or null for a text that never ends and goes on from its last tokens
function* decode(
  model,
  src,
  prompt,
  { known = [], steps, how = {}, end = null, longest, changes = [], before = null },
) {
  const chosen = known.slice(0, steps);
  const { weights } = model;
  const same =
    before?.weights === weights && JSON.stringify([before.src, before.changes]) === JSON.stringify([src, changes]);
  const encoded = same ? before.encoded : model.encode?.(src, changes);
  for (;;) {
    const over = chosen.length > 0 && chosen.at(-1) === end;
    const given = [...prompt, ...(over ? chosen.slice(0, -1) : chosen)].slice(-longest);
    const values = model.forward(encoded, given, changes, before);
    const run = { given, values, src, changes, encoded, weights };
    before = run;
    yield { ...run, chosen: [...chosen], unread: over ? 1 : 0 };
    if (over || chosen.length >= steps) return;
    const logits = model.writable(values["output.out"].row(given.length - 1));
    chosen.push(choose(logits, how, chosen.length));
    if (chosen.at(-1) === end || (end !== null && given.length === longest)) {
      yield { ...run, chosen: [...chosen], unread: 1 };
      return;
    }
  }
}
