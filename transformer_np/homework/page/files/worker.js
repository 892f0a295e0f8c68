// Python with the exercises. Messages in: { settings }, then { number, name, values }; the name of a function of tab.py.
// Messages out: { ready } or { failed }, then { limit }, and { number, result, printed } or { fatal }.

const MOST_PRINTED = 20_000; // characters that are shown

let python, tab, printed, more;

async function start({ pyodide, archive, own }) {
  const base = new URL(pyodide, self.location).href;
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const [loaded, content] = await Promise.all([
    loadPyodide({ indexURL: base, packages: ["numpy"], checkIntegrity: false }),
    fetch(archive).then((answer) => {
      if (!answer.ok) throw new Error(`${archive}: ${answer.status}`);
      return answer.arrayBuffer();
    }),
  ]);
  python = loaded;
  python.setStdin({ stdin: () => null }); // input() raises EOFError
  python.setStdout({ write: keep });
  python.setStderr({ write: keep });
  python.unpackArchive(content, "zip", { extractDir: "/homework" });
  python.FS.mkdirTree("/work");
  python.runPython("import os, sys; sys.path.insert(0, '/homework'); os.chdir('/work')");
  tab = python.pyimport("transformer_np.homework.page.tab");
  tab.begin(own ? `/homework/${own}` : undefined);
}

const decoder = new TextDecoder();

function keep(bytes) {
  const room = MOST_PRINTED - printed.length;
  if (room > 0) printed += decoder.decode(bytes.subarray(0, room));
  more += Math.max(0, bytes.length - Math.max(room, 0));
  return bytes.length;
}

// The line of a traceback that names the exception, the first line of another error.
function reason(error) {
  const lines = String(error.message ?? error).trim().split("\n");
  return (error.type && lines.filter((line) => /^[\w.]+: /.test(line)).at(-1)) || lines[0];
}

function call({ number, name, values }) {
  [printed, more] = ["", 0];
  const tell = (seconds) => self.postMessage({ limit: seconds });
  try {
    const result = tab[name](...values.map((value) => (value === "tell" ? tell : value)));
    if (more) printed += `\n… and ${more.toLocaleString("en")} characters more`;
    self.postMessage({ number, result: JSON.parse(result), printed });
  } catch (error) {
    // another error than one of Python's has ended Python
    self.postMessage(error instanceof python.ffi.PythonError ? { number, error: reason(error) } : { fatal: reason(error) });
  }
}

self.onmessage = async ({ data }) => {
  if (!data.settings) return call(data);
  [printed, more] = ["", 0];
  try {
    await start(data.settings);
    self.postMessage({ ready: true });
  } catch (error) {
    self.postMessage({ failed: reason(error) });
  }
};
