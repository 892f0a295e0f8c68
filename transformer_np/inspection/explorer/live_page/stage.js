// The stage: the text of a lesson or of the walk, one matrix, the number before and after, and nothing else.

// at: null off the stage, −1 the contents, 0 the walk, then the lessons;  own: the reader's text
// shown: of each lesson that was rehearsed, the steps that this model shows, each with a text
const lesson = { at: null, step: 0, answered: null, own: null };
const shown = new Map();

const onStage = () => lesson.at !== null;
const stepsOf = (at) => shown.get(at)?.map(({ step }) => step) ?? lessons()[at].steps;
// Whether the matrix would answer the question: it is covered until the prediction, unless that changes what it shows.
const isCovered = ({ question, after }) => Boolean(question) && lesson.answered === null && !after.some(([name]) => CHANGING.includes(name));

// Go to a step of a lesson: everything before it is done first, so that the page is as the lesson expects it.
// row: of the target, in place of the one that the step opens
function goTo(at, number = 0, answered = null, row = null) {
  if (at === null) return leave();
  if (!onStage() && lesson.own !== state.text) {
    lesson.own = state.text;
    shown.clear();
  }
  if (at > 0 && !shown.has(at)) {
    let found;
    for (const search = rehearsal(at); !(found = search.next()).done; );
    shown.set(at, found.value);
  }
  const steps = at < 0 ? [] : stepsOf(at);
  if (at >= 0 && !steps.length) at = -1;
  moving(() => {
    document.documentElement.classList.add("stage");
    const step = Math.max(0, Math.min(number, steps.length - 1));
    Object.assign(lesson, { at, step, answered });
    if (at >= 0) {
      const { before, after, question } = steps[step];
      const text = shown.get(at)?.[step].text ?? lesson.own;
      obey([["text", text], ...RESET, ...before, ...(question && answered === null ? [] : after)]);
      if (row !== null) state.place.target = row;
    }
    syncControls();
    drawLesson();
    run();
  });
}

function answer(i) {
  lesson.answered = i;
  moving(() => {
    obey(stepsOf(lesson.at)[lesson.step].after);
    drawLesson();
    run();
  });
}

function leave() {
  moving(() => {
    document.documentElement.classList.remove("stage", "contents", "covered");
    if (lesson.at > 0) obey([["text", lesson.own], ...RESET]);
    Object.assign(lesson, { at: null, answered: null });
    syncControls();
    run();
  });
  if (document.fullscreenElement) document.exitFullscreen();
}

// What a lesson changed in the state, in the fields of the page
function syncControls() {
  const { temperature, topK, topP } = state.how;
  for (const [id, value] of Object.entries({ text: state.text, temperature: temperature || 1, "top-k": topK, "top-p": topP }))
    if (byId(id).value !== String(value)) byId(id).value = value;
  byId("choice").value = temperature ? "sample" : "greedy";
}

// Draw again; where the reader allows motion, each picture moves to its new place: a result becomes a factor.
function moving(act) {
  const still = !document.startViewTransition || !result || document.hidden || matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (still || !onStage()) return act();
  const { ready } = document.startViewTransition(() => {
    act();
    return new Promise((drawn) => waiting.push(drawn));
  });
  ready.catch(() => {}); // the next step came before the pictures had moved
}

// --- drawing ---------------------------------------------------------------------------------------------------------

function drawLesson() {
  const contents = lesson.at < 0;
  document.documentElement.classList.toggle("contents", contents);
  for (const id of ["lesson-back", "lesson-next", "contents"]) byId(id).hidden = contents;
  byId("lesson-answers").replaceChildren();
  byId("lesson-verdict").textContent = byId("lesson-place").textContent = "";
  if (contents) return drawContents();
  const steps = stepsOf(lesson.at);
  const step = steps[lesson.step];
  const answered = lesson.answered !== null;
  byId("lesson-title").textContent = lessons()[lesson.at].walk ? step.title : `${lessons()[lesson.at].title}: ${step.title}`;
  const paragraphs = step.text.map((text) => element("p", {}, ...explained(filled(text))));
  if (step.question) paragraphs.push(element("p", {}, element("strong", {}, filled(step.question))));
  byId("lesson-text").replaceChildren(...paragraphs);
  if (step.question && !answered)
    byId("lesson-answers").replaceChildren(
      ...step.answers.map((text, i) => {
        const made = choice(`answer ${i}`, {}, () => answer(i), text);
        made.tabIndex = 0;
        return made;
      }),
    );
  if (answered) {
    const right = lesson.answered === step.right;
    byId("lesson-verdict").replaceChildren(
      element("strong", {}, right ? `Yes: ${step.answers[step.right]}. ` : `No: ${step.answers[step.right]}. `),
      ...explained(filled(step.why)),
    );
  }
  byId("lesson-next").disabled = Boolean(step.question) && !answered;
  byId("lesson-place").textContent = `${lesson.step + 1} of ${steps.length}`;
  document.documentElement.classList.toggle("covered", isCovered(step));
  byId("lesson-box").scrollTop = 0;
}

// {equal}: the word that is there twice;  {head}: what the last change switched off
function filled(text) {
  return text.replace(/\{(\w+)\}/g, (_, name) => {
    if (name === "equal") return quoted(words(state.kind.rows)[twins()[0]]);
    const change = state.changes.at(-1);
    return change?.type === "head" ? nameOf(change) : nameOfPart(change.name);
  });
}

// A text whose terms explain themselves: each is a button, the first time it occurs.
function explained(text) {
  const seen = new Set();
  const names = Object.keys(data.terms).sort((a, b) => b.length - a.length);
  const pattern = new RegExp(`(?<![\\p{L}-])((?:${names.join("|")})s?)(?![\\p{L}-])`, "giu");
  return text.split(pattern).map((part) => {
    const plain = part.toLowerCase();
    const term = plain in data.terms ? plain : plain.replace(/s$/, "");
    if (!(term in data.terms) || seen.has(term)) return part;
    seen.add(term);
    const made = element("button", { type: "button", class: "term", popovertarget: "term" }, part);
    made.addEventListener("click", () => byId("term").replaceChildren(element("strong", {}, capital(term)), `: ${data.terms[term]}`));
    return made;
  });
}

// The lessons, each as soon as it is known to show what it says; one that this model does not show is not offered.
function drawContents() {
  byId("lesson-title").textContent = "Lessons";
  const list = element("ol", { class: "lessons" });
  byId("lesson-text").replaceChildren(list);
  const turn = running;
  const items = lessons().map(({ title }, at) => {
    const button = choice(`lesson ${at}`, {}, () => goTo(at), title);
    button.tabIndex = 0;
    button.disabled = at > 0 && !shown.has(at) && !data.large;
    return element("li", {}, button);
  });
  list.append(...items);
  const wait = lessons().flatMap((_, at) => (at && !shown.has(at) ? [at] : []));
  const offer = (at) => {
    items[at].hidden = !shown.get(at).length;
    items[at].firstChild.disabled = false;
  };
  for (const at of shown.keys()) offer(at);
  let search = null;
  document.documentElement.dataset.offered = "";
  const next = () => {
    if (lesson.at !== -1) return;
    if (!wait.length) return void (document.documentElement.dataset.offered = "yes");
    search ??= rehearsal(wait[0]);
    const { done, value: found } = search.next();
    if (done) {
      shown.set(wait[0], found);
      offer(wait.shift());
      search = null;
    }
    setTimeout(next, 0);
  };
  if (!data.large) setTimeout(next, 50);
}

function forward() {
  if (byId("lesson-next").disabled || lesson.at < 0) return;
  if (lesson.step + 1 < stepsOf(lesson.at).length) goTo(lesson.at, lesson.step + 1);
  else goTo(-1);
}

function listenToStage() {
  byId("lessons").addEventListener("click", () => goTo(-1));
  byId("contents").addEventListener("click", () => goTo(-1));
  const walkTo = (kind, step, row) =>
    goTo(0, Math.max(0, lessons()[0].steps.findIndex(({ before: [, [, words]] }) => words.startsWith(`${kind.name} ${step} `))), null, row);
  const firstOf = (stack) => KINDS.find((kind) => kind.stack === stack); // the walk names it for the steps of no attention
  byId("to-stage").addEventListener("click", () => walkTo(openStep(flow()).row.kind ?? firstOf(state.kind.stack), state.step));
  byId("who").addEventListener("click", () => walkTo(firstOf(KINDS.at(-1).stack), "wrote", Math.max(0, place("target") - 1)));
  byId("lesson-next").addEventListener("click", forward);
  byId("lesson-back").addEventListener("click", () => (lesson.step ? goTo(lesson.at, lesson.step - 1) : goTo(-1)));
  byId("lesson-end").addEventListener("click", leave);
  byId("full").addEventListener("click", () =>
    document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen(),
  );
  addEventListener("keydown", (event) => {
    if (!onStage() || event.altKey || event.ctrlKey || event.metaKey || event.target.matches("input, select, textarea")) return;
    const arrows = !event.target.matches("canvas");
    if (event.key === "PageDown" || (arrows && event.key === "ArrowRight")) forward();
    else if (event.key === "PageUp" || (arrows && event.key === "ArrowLeft")) byId("lesson-back").click();
    else if (event.key === "Escape" && !byId("term").matches(":popover-open")) leave();
    else return;
    event.preventDefault();
  });
}
