// The residual stream: the row of one token from the embedding to the last layer, and what each sub-layer adds to it.

// The states of the stack of the chosen attention, bottom up: { name, label, added }.
// added: the output of a sub-layer, which goes into the next state
function stages(side) {
  const first = data.config.norm_first;
  const stack = translates ? { source: "encoder", target: "decoder" }[side] : "blocks";
  const input = { source: "src_input", target: "tgt_input" }[side];
  const parts = { encoder: ["attention"], decoder: ["self_attention", "cross_attention"], blocks: ["attention"] }[
    stack
  ];
  const titles = {
    attention: "self-attention",
    self_attention: "self-attention",
    cross_attention: "cross-attention",
    feed_forward: "feed-forward",
  };
  const found = translates
    ? [
        { name: `${input}.embedding.out`, label: "embedding E" },
        { name: `${input}.out`, label: "√D · E + position" },
      ]
    : [
        { name: "embedding.out", label: "embedding E" },
        ...(value("position.out") ? [{ name: "position.out", label: `E + ${fills ? "segment + " : ""}position` }] : []),
        ...(fills ? [{ name: "norm.out", label: "LayerNorm" }] : []),
      ];
  const layers = KINDS.find(({ rows }) => rows === side)?.layers ?? 0;
  for (let i = 0; i < layers; i++) {
    [...parts, "feed_forward"].forEach((part, n) => {
      found.push({ name: `${stack}.${i}.${part}.out`, label: `+ ${titles[part]} ${i + 1}`, added: true });
      found.push({ name: `${stack}.${i}.add_norm${n + 1}.out`, label: first ? "= sum" : "= Add & Norm" });
    });
  }
  const last = { encoder: "encoder_norm", decoder: "decoder_norm", blocks: "norm" }[stack];
  if (first) found.push({ name: `${last}.out`, label: "last LayerNorm" });
  return found;
}

function drawResidual() {
  const side = state.kind.rows;
  const t = place();
  const all = stages(side);
  byId("residual-text").replaceChildren(
    !translates ? "Row " : side === "source" ? "Encoder, word " : "Decoder, row ",
    isolated(words(side)[t]),
    `: one vector of ${data.config.d_model} numbers goes up through the stack. Each sub-layer reads it and adds to it. `,
    "Full colour is the largest number of the line.",
  );
  const rows = all.map(({ name, label, added }) => {
    const row = value(name).row(t);
    const changed = state.changes.some((each) => each.name === name && each.position === t);
    const line = tableRow("td", heading(label + (changed ? " *" : "")), rounded(length(row)), strip(row, label));
    line.classList.toggle("added", Boolean(added));
    line.classList.toggle("on", changed);
    return line;
  });
  fill(byId("residual-table"), ["state", "length", "features"], rows);
  const names = all.map(({ name, label, added }, i) => [
    name,
    added
      ? label.slice(2)
      : label
          .replace("=", "after")
          .replace("Add & Norm", all[i - 1]?.label.slice(2))
          .replace("sum", all[i - 1]?.label.slice(2)),
  ]);
  const chosen = byId("replace-name").value;
  options(byId("replace-name"), names, names.some(([name]) => name === chosen) ? chosen : names[1][0]);
  drawDonor();
}

// The other sentence, run through the unchanged model; its words, of which one gives its row.
let donor = null;
function drawDonor() {
  const text = seen.fold(byId("donor").value);
  const pieces = reader.encode(text);
  const usable =
    pieces.length > 0 &&
    (!(translates || fills) || pieces.length <= CONTEXT) &&
    (readsUnknown || pieces.every(({ id }) => id !== reader.unknown));
  byId("replace").disabled = !usable;
  const side = state.kind.rows;
  if (!usable) {
    byId("donor-word").replaceChildren();
    byId("donor-note").textContent = text ? "The model cannot read this." : "";
    return;
  }
  const key = JSON.stringify([text, side, state.how]);
  if (donor?.key === key) return;
  const ids = pieces.map(({ id }) => id);
  const given = translates ? prompt() : ids.slice(-CONTEXT);
  const steps = translates ? Math.min(CONTEXT, 2 * ids.length + 10) : 0;
  const run = finished(decode(model, ids, given, { steps, end: END, longest: CONTEXT }));
  const names = side === "source" ? pieces.map(({ piece }) => visible(piece)) : run.given.map(tokenOf);
  donor = { key, text, values: run.values, names };
  options(
    byId("donor-word"),
    names.map((name, i) => [i, name]),
    Math.min(place(), names.length - 1),
  );
  byId("donor-note").textContent = translates ? `Its translation: ${writer.decode(run.chosen)}` : "";
}

function replaceRow() {
  const [name, position, from] = [byId("replace-name").value, place(), Number(byId("donor-word").value)];
  const vector = donor.values[name].row(from).slice();
  const label = byId("replace-name").selectedOptions[0].textContent;
  state.changes = state.changes.filter(
    (each) => !(each.type === "replace" && each.name === name && each.position === position),
  );
  const word = words(state.kind.rows)[position];
  change({ type: "replace", name, position, vector, label, word, donor: donor.text, donorWord: donor.names[from] });
}

function listenToResidual() {
  byId("donor").addEventListener("input", drawDonor);
  byId("replace").addEventListener("click", replaceRow);
}
