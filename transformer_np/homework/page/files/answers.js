// The student's answers, kept in this browser: one entry per exercise, so that two tabs do not overwrite each other's.

const PREFIX = `homework ${new URL(".", location).pathname} `; // several courses may be on one web space

export class Answers {
  // onTrouble(): called when the browser keeps nothing
  constructor(onTrouble) {
    this.onTrouble = onTrouble;
    this.entries = new Map();
    try {
      for (const key of Object.keys(localStorage).filter((key) => key.startsWith(PREFIX))) {
        const entry = read(localStorage.getItem(key));
        if (entry) this.entries.set(key.slice(PREFIX.length), entry);
      }
    } catch {
      onTrouble();
    }
  }

  // { text, passed, outcome, importable } of an exercise; {} if it is not begun
  of(name) {
    return this.entries.get(name) ?? {};
  }

  get names() {
    return [...this.entries.keys()];
  }

  set(name, entry) {
    this.entries.set(name, { ...this.of(name), ...entry });
    this.#keep(name);
  }

  remove(name) {
    this.entries.delete(name);
    this.#keep(name);
  }

  #keep(name) {
    try {
      if (this.entries.has(name)) localStorage.setItem(PREFIX + name, JSON.stringify(this.entries.get(name)));
      else localStorage.removeItem(PREFIX + name);
    } catch {
      this.onTrouble();
    }
  }

  // Another tab has written: onChange(name)
  listen(onChange) {
    addEventListener("storage", ({ key, newValue }) => {
      if (!key?.startsWith(PREFIX)) return;
      const name = key.slice(PREFIX.length);
      const entry = read(newValue);
      if (entry) this.entries.set(name, entry);
      else this.entries.delete(name);
      onChange(name);
    });
  }
}

function read(json) {
  try {
    const entry = JSON.parse(json);
    return typeof entry?.text === "string" ? entry : null;
  } catch {
    return null;
  }
}
