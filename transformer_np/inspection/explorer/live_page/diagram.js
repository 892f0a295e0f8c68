// The diagram: which steps it has, from the bottom to the top.

const IN_HEAD = ["q", "k", "v", "scores", "mask", "weights", "heads"]; // the steps of one head

// The rows of the diagram, in the order of computation: { title, steps, kind }
function flow() {
  const { kind, layer } = state;
  const side = kind.rows;
  const input = {
    title: side === "source" ? "Input" : translates ? "Input (so far)" : "Input",
    steps: inputSteps(side),
  };
  input.steps.push(streamStep(side));
  const block = kind.block(layer);
  const inputs = { encoder: ["src_input.out"], decoder: ["tgt_input.out"], blocks: [fills ? "norm.out" : "input"] }[
    kind.stack
  ];
  let x = values("X", whole(layer ? `${kind.stack}.${layer - 1}.out` : inputs[0]));
  const rows = [input];
  KINDS.filter(({ stack }) => stack === kind.stack).forEach((each, i) => {
    const head = each === kind ? state.head : 0;
    rows.push({
      title: capital(each.title.replace(/^(en|de)coder /, "")),
      kind: each,
      steps: around(block, i + 1, side, x, each.part, attentionSteps(each, layer, head)),
    });
    x = values("X", whole(`${block}.add_norm${i + 1}.out`));
  });
  rows.push({
    title: "Feed-forward",
    steps: around(block, rows.length, side, x, "feed_forward", feedForwardSteps(block, side)),
  });
  if (side === "target" && model.speaks) {
    const last = `${model.finalNorm}.out`;
    const top = outputSteps();
    if (value(last))
      top.unshift(normStep("norm", model.finalNorm, side, values("X", whole(`${kind.stack}.${kind.layers - 1}.out`))));
    if (fills) top.unshift(...(CLASSES ? poolSteps() : headSteps()));
    rows.push({ title: "Output", steps: top });
  }
  return rows;
}

// The step that is open, in its row.
function openStep(rows) {
  for (const row of rows) {
    if (
      row.kind &&
      row.kind !== state.kind &&
      [...IN_HEAD, "out"].includes(state.step)
    )
      continue;
    const step = row.steps.find(({ id }) => id === state.step);
    if (step) return { row, step };
  }
  state.step = "weights";
  return openStep(rows);
}
