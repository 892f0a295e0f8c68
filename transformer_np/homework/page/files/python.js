// Python in a worker, which can be ended: code in C that does not return stops everything else in its thread.

const SILENT = 60; // seconds without a message from Python after which it is taken to have ended
const STOPPED = "it does not answer any more";

export class Python {
  // tell(text): what Python is doing; ready: a promise
  constructor(settings, tell) {
    Object.assign(this, { settings, tell, calls: new Map(), number: 0 });
    this.ready = this.#start("Python is loading (about 10 MB, only once)…");
    this.ready.catch(() => {});
  }

  // The result of a function of tab.py  ->  a promise of { result, printed }, or of { stopped } if it was ended
  async call(name, ...values) {
    await this.ready;
    const number = ++this.number;
    return new Promise((resolve) => {
      this.calls.set(number, resolve);
      this.worker.postMessage({ number, name, values });
      this.#watch(SILENT, STOPPED);
    });
  }

  #start(text) {
    this.tell(text);
    this.worker = new Worker("worker.js", { type: "module" });
    this.worker.postMessage({ settings: this.settings });
    return new Promise((resolve, reject) => {
      const fail = (reason) => {
        this.tell(`Python could not be loaded: ${reason}. Reload the page to try again.`);
        reject(new Error(reason));
      };
      this.worker.onerror = (event) => fail(event.message || "the browser cannot run it");
      this.worker.onmessage = ({ data }) => {
        if (typeof data !== "object" || !data) return; // a student's code may send anything
        if (data.ready) {
          this.tell("");
          this.worker.onerror = () => this.restart("Python ended");
          resolve();
        } else if (data.failed) fail(data.failed);
        else if (data.limit) this.#watch(data.limit, `it took longer than ${data.limit} s`);
        else if ("limit" in data) this.#watch(SILENT, STOPPED);
        else if (data.fatal) this.restart(data.fatal);
        else this.#answer(data);
      };
    });
  }

  #answer({ number, ...answer }) {
    this.calls.get(number)?.(answer);
    this.calls.delete(number);
    if (this.calls.size) this.#watch(SILENT, STOPPED);
    else clearTimeout(this.timer);
  }

  #watch(seconds, reason) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.restart(reason), seconds * 1000);
  }

  // End Python, whatever it is doing, and start it again.
  restart(reason) {
    clearTimeout(this.timer);
    this.worker.terminate();
    const calls = [...this.calls.values()];
    this.calls.clear();
    this.ready = this.#start("Python starts again…");
    this.ready.catch(() => {});
    for (const resolve of calls) resolve({ stopped: reason });
  }
}
