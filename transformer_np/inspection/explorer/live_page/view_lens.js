// The logit lens (nostalgebraist 2020): the next token as it would be if the stack ended at this state.

function drawLens() {
  const t = place("target");
  const labels = stages("target");
  const all = labels.filter(({ name, added }) => !added && name !== `${model.finalNorm}.out`); // the lens has it anyway
  const logits = model.writable(value("output.out").row(scoredRow(t)));
  const final = CLASSES ? targets()[0] : (following()[t] ?? ranked(logits, 1)[0].id);
  byId("lens-text").replaceChildren(
    ...(CLASSES ? ["The classifier"] : ["Row ", isolated(words("target")[t]), ": the output projection"]),
    " reads every state of the stack, not only the last. The last column is p of ",
    isolated(quoted(outcomeOf(final))),
    ".",
  );
  const rows = all.slice(1).map(({ name }) => {
    const state = CLASSES ? value(name) : value(name).slice(t, t + 1);
    const probabilities = softmax(model.writable(model.lens(state).data));
    const i = labels.findIndex((stage) => stage.name === name);
    const label = labels[i - 1]?.added ? labels[i - 1].label.slice(2) : labels[i].label;
    const best = ranked(probabilities, 3).map(({ id, p }) => {
      const cell = element(
        "td",
        { class: id === final ? "hit" : "" },
        isolated(outcomeOf(id)),
        " ",
        element("small", {}, percent(p)),
      );
      return cell;
    });
    const bar = element("td", { class: "bar-cell" }, percent(probabilities[final]));
    tint(bar, probabilities[final], 1, false);
    return tableRow("td", heading(label), ...best, bar);
  });
  fill(byId("lens-table"), ["after", ...["1st", "2nd", "3rd"].slice(0, OUTCOMES.length), "p"], rows.reverse());
}
