// One token after another: the next-word distribution, and the choice from it.

// softmax(logits / temperature); temperature 0 is greedy, and shows the distribution at temperature 1
function distribution(logits, temperature) {
  return softmax(logits.map((value) => value / (temperature || 1)));
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
function choose(logits, temperature, seed, step) {
  if (!temperature) return logits.indexOf(logits.reduce((a, b) => Math.max(a, b)));
  const probabilities = distribution(logits, temperature);
  let rest = uniform(seed, step);
  const drawn = probabilities.findIndex((p) => (rest -= p) < 0);
  return drawn < 0 ? probabilities.length - 1 : drawn;
}

// Tokens with their probabilities, the likeliest first.
function ranked(probabilities, count) {
  const order = Array.from(probabilities, (p, id) => ({ p, id })).sort((a, b) => b.p - a.p || a.id - b.id);
  return order.slice(0, count);
}

// Decode up to `steps` tokens behind the given ones, or until the end token, and yield the state after each forward:
//   chosen: the tokens, given: the ids that the decoder read, values: the intermediates
//   unread: how many of the chosen tokens it has not read: 1 for the last of all, which nothing follows
//   known: tokens that are chosen already; longest: how many tokens the model reads at once
//   end: the end token, or null for a text that never ends and goes on from its last tokens
function* decode(
  model,
  src,
  prompt,
  { known = [], steps, temperature = 0, seed = 1, end = null, longest, changes = [] },
) {
  const chosen = known.slice(0, steps);
  const memory = model.encode?.(src, changes);
  for (;;) {
    const over = chosen.length > 0 && chosen.at(-1) === end;
    const given = [...prompt, ...(over ? chosen.slice(0, -1) : chosen)].slice(-longest);
    const values = model.forward(memory, given, changes);
    yield { chosen: [...chosen], given, values, unread: over ? 1 : 0 };
    if (over || chosen.length >= steps) return;
    const logits = model.writable(values["output.out"].row(given.length - 1));
    chosen.push(choose(logits, temperature, seed, chosen.length));
    if (chosen.at(-1) === end || (end !== null && given.length === longest)) {
      yield { chosen: [...chosen], given, values, unread: 1 };
      return;
    }
  }
}
