// homework.py, put together from the answers: what `transformer-np homework check`, pytest and `grade` take.

const KEPT = "#| "; // begins the lines of a text that is not Python

// course: course.json; answers: Answers
export function homeworkFile(course, answers) {
  const known = new Set(course.chapters.flatMap(({ exercises }) => exercises.map(({ name }) => name)));
  const pieces = course.chapters.flatMap(({ heading, exercises }) => [
    heading,
    ...exercises.map((exercise) => `${exercise.comment}\n${section(exercise, answers.of(exercise.name))}`),
  ]);
  const others = answers.names.filter((name) => !known.has(name)).sort(); // a changed course loses nothing
  if (others.length) {
    pieces.push(`${"# --- Not in this course ".padEnd(119, "-")}\n`);
    for (const name of others) pieces.push(`${mark(name)}\n${section({ text: "" }, answers.of(name))}`);
  }
  return `${course.head}\n${pieces.join("\n\n")}`;
}

function mark(name) {
  return `# hint: transformer-np homework hint ${name}`;
}

function section(exercise, { text, importable }) {
  if (text === undefined || text === exercise.text) return exercise.stub;
  const head = exercise.stub ? exercise.text.slice(0, exercise.text.indexOf(exercise.stub)) : "";
  const own = head && text.startsWith(head) ? text.slice(head.length) : text;
  const whole = `${own.replace(/^\n+|\n+$/g, "")}\n`;
  return importable === false ? whole.replace(/^/gm, KEPT).replace(/\n#\| $/, "\n") : whole;
}
