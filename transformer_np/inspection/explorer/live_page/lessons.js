// Lessons: steps that drive the page, each with a text, and where it helps a prediction before the page shows what
// happens. data.lessons: [{ title, steps: [{ title, text, question, answers, right, why, before, after }] }]
// before: commands as the step begins; after: commands when the prediction is made, or at once without a question

const lesson = { at: -1, step: 0, answered: null };

// The commands of a lesson: what they do to the state. The page is drawn once, after all of them.
const COMMANDS = {
  text: (words) => {
    byId("text").value = words;
    byId("remark").textContent = take(words);
  },
  open: (words) => {
    state.worked = null;
    for (const word of words.split(/\s+/)) {
      const kind = KINDS.find(({ name }) => name === word);
      const [, part, number] = word.match(/^(layer|head|row|key|column)=(\d+|last)$/) ?? [];
      const n = number === "last" ? Infinity : Number(number) - 1;
      if (kind) Object.assign(state, { kind, layer: Math.min(state.layer, kind.layers - 1) });
      else if (part === "layer") state.layer = Math.min(n, state.kind.layers - 1);
      else if (part === "head") state.head = Math.min(n, H - 1);
      else if (part === "row") state.place[state.kind.rows] = n;
      else if (part) state.column = n === Infinity ? 1e6 : n;
      else state.step = word;
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
    if (type in SWITCHES) state.changes.push({ type });
    else if (type === "off") {
      const kind = KINDS.find(({ name }) => name === at.kind);
      state.changes.push({
        type,
        name: where.includes("feed_forward")
          ? `${kind.block(at.layer)}.feed_forward.out`
          : `${kind.path(at.layer)}.out`,
      });
    } else if (type === "key") state.changes.push({ type, ...at, word: words_of(at) });
    else state.changes.push({ type, ...at });
  },
  best: (words) => {
    const found = ranking.found
      ?.filter(({ change }) => change.type === (words || "head"))
      .sort((a, b) => b.rise - a.rise)[0];
    if (found) {
      const { change } = found;
      if (change.type === "head")
        Object.assign(state, {
          kind: KINDS.find(({ name }) => name === change.kind),
          layer: change.layer,
          head: change.head,
        });
      state.changes.push(change);
    }
  },
  undo: () => (state.changes = []),
  choose: (words) => {
    const given = Object.fromEntries(words.split(/\s+/).map((word) => word.split("=")));
    byId("choosing").open = true;
    byId("choice").value = words === "greedy" ? "greedy" : "sample";
    byId("temperature").value = given.temperature ?? 1;
    byId("top-k").value = given["top-k"] ?? 0;
    byId("top-p").value = given["top-p"] ?? 1;
    Object.assign(state.how, {
      temperature: words === "greedy" ? 0 : Number(byId("temperature").value),
      topK: Number(byId("top-k").value),
      topP: Number(byId("top-p").value),
    });
    state.fixed = [];
  },
  write: (count) => (state.steps = count === "all" ? (translates ? null : MORE) : Number(count)),
  sgd: () => {
    gradients();
    drawTraining();
    takeStep();
  },
  trained: () => {
    if (training.trained) model.weights = training.trained;
    Object.assign(training, { trained: null, taken: [], rate: null });
    state.fixed = [];
  },
  product: (formula) => (state.worked = formula === "none" ? null : workedStep(data.lessons[lesson.at], formula)),
};
const words_of = ({ kind, key }) => words(KINDS.find(({ name }) => name === kind).keys)[key];

function obey(commands) {
  for (const [name, words] of commands) COMMANDS[name](words);
  run();
}

function drawLesson() {
  byId("lesson-box").hidden = lesson.at < 0;
  if (lesson.at < 0) return;
  const { title, steps } = data.lessons[lesson.at];
  const step = steps[lesson.step];
  byId("lesson-title").textContent = `${title}: ${step.title}`;
  byId("lesson-text").replaceChildren(
    ...[...step.text, ...(step.question ? [step.question] : [])].map((text, i) =>
      element("p", {}, i === step.text.length ? element("strong", {}, text) : text),
    ),
  );
  const answered = lesson.answered !== null;
  const answers = (step.question ? step.answers : []).map((text, i) => {
    const made = choice(
      `answer ${i}`,
      { here: i === 0, name: answered ? (i === step.right ? "right" : i === lesson.answered ? "wrong" : "") : "" },
      () => answer(i),
      text,
    );
    made.tabIndex = 0;
    made.disabled = answered;
    return made;
  });
  byId("lesson-answers").replaceChildren(...answers);
  byId("lesson-verdict").textContent = answered
    ? `${lesson.answered === step.right ? "Yes." : `No: “${step.answers[step.right]}”.`} ${step.why}`
    : "";
  byId("lesson-next").disabled = Boolean(step.question) && !answered;
  byId("lesson-next").textContent = lesson.step + 1 < steps.length ? "Next" : "Done";
  byId("lesson-back").disabled = lesson.step === 0;
  byId("lesson-place").textContent = `${lesson.step + 1} of ${steps.length}`;
}

function answer(i) {
  lesson.answered = i;
  const { after } = data.lessons[lesson.at].steps[lesson.step];
  drawLesson();
  obey(after);
  byId("lesson-next").focus();
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
      matrices.set(plain, computedFrom(made[1].split(" = ")[1]));
    }
    return name === plain ? matrices.get(plain) : matrices.get(plain).transposed;
  };
  const computedFrom = (terms) => {
    if (terms.startsWith("softmax ")) return softmaxRows(found(terms.slice(8)));
    const [left, , factor, , root] = terms.split(" ");
    return linear(found(left), found(factor)).map((x) => x / (root ? Math.sqrt(Number(root.slice(1))) : 1));
  };
  const part = (name, matrix) => ({ symbol: name, get: () => matrix, gradient: () => undefined });
  const result = part(symbol, computedFrom(right));
  const shared = {
    formula,
    rows: "target",
    words: all.words,
    columns: ["S", "A"].includes(symbol) ? all.words : undefined,
  };
  if (right.startsWith("softmax ")) {
    const S = part(right.slice(8), found(right.slice(8)));
    const cell = (i, j) =>
      `${cellName(symbol, i, j)} = e^${rounded(S.get().at(i, j))} / Σ e^S of the row = ${rounded(result.get().at(i, j))}`;
    return {
      ...shared,
      id: "worked",
      label: symbol,
      title: "Softmax of each row",
      sign: ["→ softmax →"],
      factors: [S],
      result,
      cell,
    };
  }
  const [left, , factor, , root] = right.split(" ");
  const divide = root ? Math.sqrt(Number(root.slice(1))) : 1;
  return {
    ...shared,
    ...product("worked", symbol, "A product of matrices", formula, {
      ...shared,
      left: part(left, found(left)),
      right: part(factor, found(factor)),
      result,
      divide,
    }),
  };
}

// Go to a step: everything before it is done first, so that the page is as the lesson expects it.
function goTo(at, number) {
  Object.assign(lesson, { at, step: number, answered: null });
  if (at >= 0) {
    const { steps } = data.lessons[at];
    const commands = steps.slice(0, number).flatMap(({ before, after }) => [...before, ...after]);
    const { before, after, question } = steps[number];
    obey([
      ["undo"],
      ["trained"],
      ["choose", "greedy"],
      ["show", "value"],
      ["product", "none"],
      ...commands.filter(([name]) => name !== "sgd"),
      ...before,
      ...(question ? [] : after),
    ]);
  } else {
    state.worked = null;
    state.changes = [];
    run();
  }
  byId("lesson").value = String(at);
  drawLesson();
}

function listenToLessons() {
  options(byId("lesson"), [[-1, "none"], ...data.lessons.map(({ title }, i) => [i, `${i + 1} ${title}`])], -1);
  byId("lesson").addEventListener("change", () => goTo(Number(byId("lesson").value), 0));
  byId("lesson-next").addEventListener("click", () => {
    const { steps } = data.lessons[lesson.at];
    if (lesson.step + 1 < steps.length) goTo(lesson.at, lesson.step + 1);
    else goTo(-1, 0);
  });
  byId("lesson-back").addEventListener("click", () => goTo(lesson.at, lesson.step - 1));
  byId("lesson-end").addEventListener("click", () => goTo(-1, 0));
}
