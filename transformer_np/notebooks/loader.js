// Pyodide from its own address, PYODIDE, with the site's packages, OURS, in its list of packages: a cell that imports
// one has the browser fetch it from the site. `load` is Pyodide's own loadPyodide.

async function withOurs(load, options) {
  const answer = await fetch(`${PYODIDE}pyodide-lock.json`);
  if (!answer.ok) throw new Error(`${PYODIDE}pyodide-lock.json: ${answer.status}`);
  const lock = await answer.json();
  for (const entry of Object.values(lock.packages)) entry.file_name = new URL(entry.file_name, PYODIDE).href;
  for (const [name, entry] of Object.entries(OURS)) {
    lock.packages[name] ??= { ...entry, file_name: new URL(entry.file_name, options.indexURL).href };
  }
  for (const name of Object.keys(OURS)) {
    lock.packages[name].depends = lock.packages[name].depends.filter((other) => other in lock.packages);
  }
  const lockFileURL = URL.createObjectURL(new Blob([JSON.stringify(lock)], { type: "application/json" }));
  return load({ ...options, indexURL: PYODIDE, lockFileURL });
}
