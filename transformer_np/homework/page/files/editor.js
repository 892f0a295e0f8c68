// The editor: CodeMirror with Python's colours, and the marked line of a mistake.

import {
  bracketMatching, classHighlighter, Decoration, defaultKeymap, EditorState, EditorView, highlightActiveLineGutter,
  history, historyKeymap, indentOnInput, indentUnit, indentWithTab, keymap, lineNumbers, pythonLanguage, StateEffect,
  StateField, syntaxHighlighting,
} from "./codemirror.js";

const guilty = StateEffect.define(); // the number of a line, or null
const guiltyLine = StateField.define({
  create: () => Decoration.none,
  update(marks, transaction) {
    for (const effect of transaction.effects) {
      if (effect.is(guilty)) marks = marked(transaction.state.doc, effect.value);
    }
    return transaction.docChanged ? Decoration.none : marks;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function marked(doc, line) {
  if (!line || line > doc.lines) return Decoration.none;
  return Decoration.set([Decoration.line({ class: "guilty" }).range(doc.line(line).from)]);
}

export class Editor {
  // onChange(text) after the student's edits; onCheck() for Ctrl+Enter
  constructor(parent, onChange, onCheck) {
    const check = () => (onCheck(), true);
    this.extensions = [
      lineNumbers(), highlightActiveLineGutter(), history(), indentOnInput(), bracketMatching(), guiltyLine,
      indentUnit.of("    "), EditorState.tabSize.of(4), pythonLanguage, syntaxHighlighting(classHighlighter),
      keymap.of([{ key: "Mod-Enter", run: check }, { key: "Ctrl-Enter", run: check }]),
      keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
      EditorView.contentAttributes.of({ "aria-label": "Your answer", "aria-describedby": "keys", spellcheck: "false", tabindex: "0" }),
      EditorView.updateListener.of((update) => update.docChanged && onChange(this.text)),
    ];
    this.view = new EditorView({ parent });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  // Show a text with a history of its own: undo never leads to another exercise.
  show(text) {
    this.view.setState(EditorState.create({ doc: text, extensions: this.extensions }));
  }

  // Replace the text as an edit that can be undone.
  replace(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  mark(line) {
    this.view.dispatch({ effects: guilty.of(line) });
  }

  go(line) {
    const { from } = this.view.state.doc.line(Math.min(line, this.view.state.doc.lines));
    this.view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    this.view.focus();
  }
}
