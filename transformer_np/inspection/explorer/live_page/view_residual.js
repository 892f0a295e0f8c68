// Replace a row of the residual stream with one from another sentence.

function drawResidual() {
  const all = stages(state.kind.rows);
  const names = all.map(({ name, label, added, from }) => [name, added ? label.slice(2) : (from ?? label)]);
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
