// codemirror.js is made from this file:
//   npm install @codemirror/{commands,lang-python,language,state,view} @lezer/highlight esbuild
//   npx esbuild codemirror.entry.js --bundle --minify --format=esm --legal-comments=none --outfile=codemirror.js
export { EditorView, keymap, lineNumbers, highlightActiveLine, highlightActiveLineGutter, drawSelection, Decoration } from "@codemirror/view";
export { EditorState, StateField, StateEffect } from "@codemirror/state";
export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
export { classHighlighter } from "@lezer/highlight";
export { pythonLanguage } from "@codemirror/lang-python";
