// The package's own ledger, in Python, in a worker. Loaded when first asked for.

let worker = null;
let ready = null;
let waiting = null;

function stop() {
  worker?.terminate();
  worker = ready = null;
  waiting?.(new DOMException("cancelled", "AbortError"));
  waiting = null;
}

/** Loads Python; `progress` is told the bytes that have come, `signal` ends all. */
function start(progress) {
  worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  return new Promise((resolve, reject) => {
    worker.addEventListener("message", ({ data }) => {
      if ("loaded" in data) progress(data.loaded);
      if (data.ready) resolve();
      if (data.failed) reject(new Error(data.failed));
    });
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      reject(new Error(event.message || "Python could not be started"));
    });
  });
}

/** The record of a configuration; rejects with the ledger's one line, or when cancelled. */
export async function answer(text, { progress, signal }) {
  signal.addEventListener("abort", stop, { once: true });
  try {
    const cancelled = new Promise((_, reject) => (waiting = reject));
    ready ??= start(progress);
    await Promise.race([ready, cancelled]).catch((reason) => {
      stop();
      throw reason;
    });
    const answered = new Promise((resolve) => {
      worker.addEventListener("message", ({ data }) => "answer" in data && resolve(data.answer), { once: true });
      worker.postMessage(text);
    });
    const record = JSON.parse(await Promise.race([answered, cancelled]));
    if (record.error) throw new RangeError(record.error);
    return record;
  } finally {
    waiting = null;
    signal.removeEventListener("abort", stop);
  }
}
