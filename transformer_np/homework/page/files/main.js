// The page: the list of exercises, the editor with one of them, and what Python says about it.

import { Answers } from "./answers.js";
import { Editor } from "./editor.js";
import { homeworkFile } from "./file.js";
import { Python } from "./python.js";

const MARKS = { passed: ["✓", "right"], wrong: ["✗", "not right yet"], begun: ["◦", "begun"], "": ["·", "not started"] };
const HINTS = ["A question", "The equation", "Where to look"];
const ENDINGS = [
  ["it took longer", "It was inside one call of code in C, such as sum(range(10**12)), which cannot be interrupted."],
  ["answer any more", "If your answer has not ended it, check it again."],
  ["exit(", "A call such as os._exit ends Python at once: return from the function instead."],
  ["", "Recursion without an end or too large an array can do this."],
];
const WIDTH = 100; // of the lines of a message
const byId = (id) => document.getElementById(id);

let course, exercises, answers, editor, python, current;
let last = {}; // name of an exercise: the result of the check of its present text
let hints = 0; // how many are shown

// --- the exercises ---------------------------------------------------------------------------------------------------

function textOf(name) {
  return answers.of(name).text ?? exercises.get(name).text;
}

function markOf(name) {
  const { text, passed, outcome } = answers.of(name);
  if (passed) return "passed";
  if (outcome && outcome !== "not started") return "wrong";
  return text !== undefined ? "begun" : "";
}

// The exercises by name: those of the course, then those that it no longer has and the student has begun.
function collect() {
  const chapters = course.chapters.map((chapter) => ({ ...chapter }));
  const known = new Set(chapters.flatMap((chapter) => chapter.exercises.map(({ name }) => name)));
  const others = answers.names.filter((name) => !known.has(name)).sort();
  if (others.length) {
    const about = "begun here, but not in this course";
    const found = others.map((name) => ({ name, about, hints: [], task: [], text: "", stub: "" }));
    chapters.push({ title: "Not in this course", notebook: "", exercises: found });
  }
  exercises = new Map(chapters.flatMap((chapter) => chapter.exercises.map((exercise) => [exercise.name, exercise])));
  return chapters;
}

function list() {
  const open = new Set([...byId("list").querySelectorAll("details[open]")].map(({ dataset }) => dataset.title));
  byId("list").replaceChildren(
    ...collect().map(({ title, notebook, exercises: here }) => {
      const right = here.filter(({ name }) => answers.of(name).passed).length;
      const chapter = element("details", { open: open.has(title) || here.some(({ name }) => name === current) });
      chapter.dataset.title = title;
      const about = `${right} of ${here.length}${notebook ? `, notebook ${notebook}` : ""}`;
      const summary = element("summary", {}, `${title} `, element("small", {}, about));
      chapter.append(summary, element("ul", {}, ...here.map(({ name }) => element("li", {}, choice(name)))));
      return chapter;
    }),
  );
  const counted = course.chapters.flatMap((chapter) => chapter.exercises);
  const right = counted.filter(({ name }) => answers.of(name).passed).length;
  byId("progress").max = counted.length;
  byId("progress").value = right;
  byId("count").textContent = `${right} of ${counted.length} ${counted.length === 1 ? "exercise" : "exercises"} right`;
}

function choice(name) {
  const [mark, meaning] = MARKS[markOf(name)];
  const sign = element("span", { ariaHidden: "true" }, mark);
  const button = element("button", { type: "button", className: markOf(name), title: meaning }, sign, name);
  button.setAttribute("aria-current", String(name === current));
  button.setAttribute("aria-label", `${name}, ${meaning}`);
  button.onclick = () => {
    choose(name);
    byId("exercises").open &&= isWide();
    byId("name").focus();
  };
  return button;
}

function choose(name) {
  if (!exercises.has(name)) throw new Error(`there is no exercise ${name}`);
  current = name;
  hints = 0;
  const exercise = exercises.get(name);
  const about = [exercise.about, exercise.worth, exercise.extended ? "extended" : ""];
  byId("name").textContent = name;
  byId("about").textContent = about.filter(Boolean).join(", ");
  byId("task-text").replaceChildren(...exercise.task.map(([kind, text]) => block(kind === "code", text)));
  byId("task").hidden = !exercise.task.length;
  byId("hint").disabled = !exercise.hints.length;
  editor.show(textOf(name));
  show(last[name]);
  showHints();
  history.replaceState(null, "", `#${name}`);
  list();
}

// --- checking --------------------------------------------------------------------------------------------------------

function write(text) {
  delete last[current];
  if (text === exercises.get(current).text) answers.remove(current);
  else answers.set(current, { text, outcome: undefined, importable: undefined });
}

async function check(seed, seconds = course.seconds) {
  const name = current;
  const texts = Object.fromEntries(answers.names.map((other) => [other, answers.of(other).text]));
  texts[name] = editor.text;
  say("Checking…");
  checking(true);
  try {
    const { result, printed, stopped, error } = await python.call(
      "check", name, JSON.stringify(texts, wellFormed), seconds, "tell", seed,
    );
    if (error) python.restart(error); // the answer may have changed Python for all that follow
    const found = result ? { ...result, printed } : { ...failed(name, stopped, error), printed: "" };
    note(name, texts[name], found);
    if (name === current) show(found);
    return { passed: found.passed, outcome: found.outcome, text: found.text, line: found.line, seed: found.seed ?? null };
  } finally {
    checking(false);
    if (byId("state").textContent === "Checking…") say("");
  }
}

// A disabled button would lose the focus of the keyboard.
function checking(now) {
  byId("check").setAttribute("aria-disabled", String(now));
}

async function checkUnlessChecking() {
  if (byId("check").getAttribute("aria-disabled") === "true") return;
  await check();
  byId("verdict").scrollIntoView({ block: "nearest" }); // it may be below the window
}

function wellFormed(key, value) {
  return typeof value === "string" ? (value.toWellFormed?.() ?? value) : value;
}

// What is said without a result: no line is known, because Python was ended or the page's own code has failed.
function failed(name, stopped, error) {
  const ended = stopped && `Python was ended: ${stopped}. ${ENDINGS.find(([part]) => stopped.includes(part))[1]}`;
  const text = `${name}: crashed. ${ended ?? `The page's own code fails, not the answer: ${error}. Report it to the teacher.`}`;
  return { passed: false, outcome: "crashed", text, line: null };
}

function note(name, text, found) {
  if (answers.of(name).text !== undefined && answers.of(name).text !== text) return; // edited in the meantime
  const importable = found.outcome !== "cannot be imported";
  if (text !== exercises.get(name).text) answers.set(name, { text, outcome: found.outcome, passed: found.passed, importable });
  last[name] = found;
  list();
}

function say(text) {
  byId("state").textContent = text;
}

function show(found) {
  byId("verdict").hidden = !found;
  editor.mark(found && !found.passed ? found.line : null);
  if (!found) return;
  byId("verdict").className = found.passed ? "passed" : "wrong";
  byId("said").replaceChildren(...blocks(found.text));
  const shown = found.line && !found.passed;
  byId("go").hidden = !shown;
  byId("go").textContent = `Go to line ${found.line}`;
  byId("remarks").replaceChildren(...(found.remarks ?? []).map((remark) => element("li", {}, remark)));
  byId("remarks").hidden = !found.remarks?.length;
  byId("printed").hidden = !found.printed;
  byId("printed-text").textContent = found.printed ?? "";
}

// A message: lines that begin with a space are code and keep their places; prose, which was wrapped, is joined again.
function blocks(text) {
  const found = [];
  let before = "";
  for (const line of text.split("\n")) {
    const isCode = line.startsWith(" ");
    const last = found.at(-1);
    const goesOn = last && last.isCode === isCode && (isCode || `${before} ${line.split(" ")[0]}`.length > WIDTH);
    if (goesOn) last.text += (isCode ? "\n" : " ") + line;
    else if (line.trim()) found.push({ isCode, text: line });
    before = line;
  }
  return found.map(({ isCode, text }) => block(isCode, text));
}

function block(isCode, text) {
  const parts = text.split("`"); // prose has names between two of them
  if (isCode || parts.length % 2 === 0) return element(isCode ? "pre" : "p", {}, text);
  return element("p", {}, ...parts.map((part, i) => (i % 2 ? element("code", {}, part) : part)));
}

// --- hints -----------------------------------------------------------------------------------------------------------

function showHints() {
  const exercise = exercises.get(current);
  const shown = exercise.hints.slice(0, hints).flatMap((hint, i) => [element("h4", {}, HINTS[i]), ...blocks(hint)]);
  if (hints > exercise.hints.length) shown.push(element("h4", {}, "Your own code"), ...blocks(ownHint()));
  byId("hints").hidden = !shown.length;
  byId("hints-text").replaceChildren(...shown);
  const left = exercise.hints.length + 1 - hints;
  byId("hint").textContent = hints ? "Next hint" : "Hint";
  byId("hint").disabled = !exercise.hints.length || left <= 0;
}

function ownHint() {
  const found = last[current];
  if (!found) return "Check your answer first.";
  if (found.passed) return "It is right.";
  if (found.waits?.length) return `It waits for ${found.waits.join(", ")}.`;
  if (found.outcome === "not started") return "It is not written yet.";
  if (found.mends && !found.repair) return "What has to change is marked above.";
  if (!found.repair) return "No edit was found that makes it right.";
  return `Line ${found.line}: this change makes ${found.mends}\n ${found.repair}`;
}

// --- the file --------------------------------------------------------------------------------------------------------

function save() {
  return homeworkFile(course, answers);
}

// Find out which answers are Python, where it is not known: the others are comments in the file.
async function examine() {
  const unknown = answers.names.filter((name) => answers.of(name).importable === undefined);
  if (!unknown.length) return;
  const texts = Object.fromEntries(unknown.map((name) => [name, answers.of(name).text]));
  const { result } = await python.call("examine", JSON.stringify(texts, wellFormed));
  for (const name of unknown) answers.set(name, { importable: !result?.[name] });
}

async function saveFile() {
  if (python?.started) await examine();
  const link = element("a", { download: "homework.py" });
  link.href = URL.createObjectURL(new Blob([save()], { type: "text/x-python" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  const left = answers.names.filter((name) => answers.of(name).importable === false);
  say(
    left.length
      ? `Saved. ${left.join(", ")}: not Python that can be imported, and therefore in the file as comments, so that the ` +
          "other answers count."
      : "homework.py is saved.",
  );
}

async function open(text) {
  const { result, error, stopped } = await python.call("opened", text.toWellFormed?.() ?? text);
  if (!result) throw new Error(error ?? stopped);
  const replaced = Object.keys(result).filter((name) => answers.of(name).text !== undefined && answers.of(name).text !== result[name]);
  if (replaced.length && !confirm(`Replace your answers to ${replaced.join(", ")} by those of the file?`)) return;
  for (const [name, answer] of Object.entries(result)) {
    if (answers.of(name).text === answer) continue;
    answers.set(name, { text: answer, outcome: undefined, passed: false, importable: undefined });
    delete last[name];
  }
  await examine();
  list();
  choose(current);
  const number = Object.keys(result).length;
  say(`The file contains ${number === 1 ? "1 answer" : `${number} answers`}.`);
}

async function openFile({ target }) {
  const [file] = target.files;
  if (!file) return;
  try {
    await open(await file.text());
  } catch (error) {
    say(`${file.name} was not opened: ${error.message.replace(/^\w+Error: /, "")}.`);
  }
  target.value = "";
}

// --- the beginning ---------------------------------------------------------------------------------------------------

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Whether the list is beside the exercise, not above it.
function isWide() {
  return matchMedia("(min-width: 56rem)").matches;
}

function warn(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = false;
}

// A browser that forbids it, as in private windows, runs the page without. In the first visit, the page's files came
// before the service worker, which keeps what it sees: they are asked for again.
async function keepForOffline() {
  if (!navigator.serviceWorker) return;
  const isFirst = !navigator.serviceWorker.controller;
  const controlled = new Promise((resolve) => navigator.serviceWorker.addEventListener("controllerchange", resolve));
  try {
    await navigator.serviceWorker.register("service.js");
    const soon = new Promise((resolve) => setTimeout(resolve, 2000));
    if (isFirst) await Promise.race([controlled, soon]);
    const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
    if (isFirst) await Promise.allSettled([location.pathname, ...loaded].map((file) => fetch(file)));
  } catch {
    // it works while there is a network
  }
}

async function begin() {
  answers = new Answers(() => {
    warn("This browser keeps nothing of this page: save homework.py before you leave it, and open it next time.");
  });
  const answer = await fetch("course.json");
  if (!answer.ok) throw new Error(`course.json: ${answer.status}`);
  course = await answer.json();
  document.title = byId("title").textContent = course.title || "Homework";
  byId("course-note").textContent = course.deadline ? `Deadline: ${course.deadline}` : "";
  byId("course-note").hidden = !course.deadline;
  collect();
  editor = new Editor(byId("editor"), write, checkUnlessChecking);
  answers.listen((name) => (name === current ? choose(name) : list()));
  const wanted = decodeURIComponent((location.hash || location.search).slice(1));
  choose(exercises.has(wanted) ? wanted : next(null));
  byId("exercises").open = isWide();
  for (const [id, action] of Object.entries({ check: checkUnlessChecking, hint: nextHint, again, save: saveFile })) byId(id).onclick = action;
  byId("next").onclick = () => choose(next(current));
  byId("go").onclick = () => editor.go(last[current].line);
  byId("open").onchange = openFile;
  await keepForOffline();
  navigator.storage?.persist?.();
  python = new Python(course, (text) => say(text));
  await python.ready;
  python.started = true;
}

// The first exercise after this one that is not right; the first of all after the last.
function next(name) {
  const names = [...exercises.keys()];
  const order = [...names.slice(names.indexOf(name) + 1), ...names.slice(0, names.indexOf(name) + 1)];
  return order.find((other) => !answers.of(other).passed) ?? order[0];
}

function nextHint() {
  hints += 1;
  showHints();
}

function again() {
  if (answers.of(current).text !== undefined && !confirm(`Discard your answer to ${current}?`)) return;
  answers.remove(current);
  delete last[current];
  choose(current);
}

const ready = begin();
ready.catch((error) => python || warn(`The page could not be loaded: ${error.message}.`));

window.homework = {
  ready,
  choose,
  set: (text) => editor.replace(text),
  check: async (seed, seconds) => (await ready, check(seed, seconds)),
  save,
  open: async (text) => (await ready, open(text)),
};
