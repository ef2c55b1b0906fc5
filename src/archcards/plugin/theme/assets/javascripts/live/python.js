// The package's own ledger, in Python, in a worker. Loaded when first asked for, and shared by all
// panels of a page.

let worker = null;
let ready = null;
let asked = 0;
// Those who wait: each is told of bytes that have come.
const waiting = new Set();

function stop() {
  worker?.terminate();
  worker = ready = null;
}

function start() {
  worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  const started = worker;
  return new Promise((resolve, reject) => {
    started.addEventListener("message", ({ data }) => {
      if ("loaded" in data) waiting.forEach((progress) => progress(data.loaded));
      if (data.ready) resolve(started);
      if (data.failed) reject(new Error(data.failed));
    });
    started.addEventListener("error", (event) => {
      event.preventDefault();
      reject(new Error(event.message || "Python could not be started"));
    });
  });
}

const answered = (of, text) =>
  new Promise((resolve) => {
    const number = ++asked;
    of.addEventListener("message", function heard({ data }) {
      if (data.number !== number) return;
      of.removeEventListener("message", heard);
      resolve(data.answer);
    });
    of.postMessage({ number, text });
  });

/**
 * The record of a configuration; rejects with the ledger's one line, or when `signal` cancels.
 * `progress` is told the bytes that have come. The last who cancels ends the worker too.
 */
export async function answer(text, { progress, signal }) {
  const cancelled = new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  const given = async () => {
    try {
      return await answered(await (ready ??= start()), text);
    } catch (reason) {
      stop();
      throw reason;
    }
  };
  waiting.add(progress);
  try {
    const record = JSON.parse(await Promise.race([given(), cancelled]));
    if (record.error) throw new RangeError(record.error);
    return record;
  } finally {
    waiting.delete(progress);
    if (signal.aborted && !waiting.size) stop();
  }
}
