// The diagram: which steps it has, from the bottom to the top.

const IN_HEAD = ["q", "k", "v", "scores", "mask", "weights", "heads"]; // the steps of one head

// The rows of the diagram, in the order of computation: { title, steps, kind }
function flow() {
  const { kind, layer } = state;
  const [side, block] = [kind.rows, kind.block(layer)];
  const far = translates && side === "target" ? "Input (so far)" : "Input";
  const rows = [{ title: far, steps: [...inputSteps(side), streamStep(side)] }];
  const input = { encoder: "src_input.out", decoder: "tgt_input.out", blocks: fills ? "norm.out" : "input" }[kind.stack];
  let x = kept("X", layer ? `${kind.stack}.${layer - 1}.out` : input);
  const add = (title, part, steps, own) => {
    rows.push({ title, kind: own, steps: around(block, rows.length, side, x, part, steps) });
    x = kept("X", `${block}.add_norm${rows.length - 1}.out`);
  };
  for (const each of KINDS.filter(({ stack }) => stack === kind.stack))
    add(capital(each.title.replace(/^(en|de)coder /, "")), each.part, attentionSteps(each, layer, each === kind ? state.head : 0), each);
  add("Feed-forward", "feed_forward", feedForwardSteps(block, side));
  if (side !== "target" || !model.speaks) return rows;
  const top = CLASSES ? poolSteps() : fills ? headSteps() : [];
  if (value(`${model.finalNorm}.out`))
    top.push(normStep("norm-last", model.finalNorm, side, kept("X", `${kind.stack}.${kind.layers - 1}.out`)));
  return [...rows, { title: "Output", steps: [...top, ...outputSteps()] }];
}

// The step that is open, in its row.
function openStep(rows) {
  for (const row of rows) {
    if (row.kind && row.kind !== state.kind && [...IN_HEAD, "out"].includes(state.step)) continue;
    const step = row.steps.find(({ id }) => id === state.step);
    if (step) return { row, step };
  }
  state.step = "weights";
  return openStep(rows);
}
