// A model without words to guess makes a vector of a text: how similar the vectors of other texts are.

const cosine = (a, b) => dot(a, b) / (length(a) * length(b));

// The vectors of the other texts, by the unchanged model; one text after another, while nothing else is asked for
const others = new Map();
function drawSimilar() {
  byId("bars-title").textContent = "Cosine similarity with";
  const [now, before] = [result.values, teacherForced(result, [])].map(textVector);
  const changed = state.changes.length > 0;
  const texts = data.examples.slice(0, 8).filter((text) => others.has(text));
  const found = texts.map((text) => ({
    text,
    now: cosine(others.get(text), now),
    before: cosine(others.get(text), before),
  }));
  found.sort((a, b) => b.now - a.now);
  const bars = found.map((each, i) => {
    const amount = element("span", { class: "amount" }, rounded(each.now));
    if (changed)
      amount.prepend(
        element("small", {}, `${each.now < each.before ? "−" : "+"}${Math.abs(each.now - each.before).toFixed(2)} `),
      );
    const bar = choice(
      `bar ${i}`,
      { here: i === 0, name: "next" },
      () => type(each.text),
      isolated(each.text),
      " ",
      amount,
    );
    tint(bar, Math.max(0, each.now), 1, false);
    if (changed) bar.style.setProperty("--before", `${100 * Math.max(0, each.before)}%`);
    bar.classList.toggle("compared", changed);
    return bar;
  });
  redraw(byId("bars"), ...bars);
  byId("bars-note").textContent = "Of the means over the tokens. Choose one to type it.";
  const turn = [
    element("dt", {}, "cosine of the vector before and after"),
    element("dd", {}, cosine(now, before).toFixed(3)),
  ];
  byId("effect").replaceChildren(...(changed ? turn : []));
  const next = data.examples.slice(0, 8).find((text) => !others.has(text));
  if (next !== undefined)
    setTimeout(() => {
      if (others.has(next)) return;
      const ids = reader
        .encode(next)
        .map(({ id }) => id)
        .slice(0, CONTEXT);
      others.set(next, textVector(model.forward(undefined, ids)));
      drawSimilar();
    }, 50);
}
