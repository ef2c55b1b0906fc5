// Runs the ledger on Pyodide. Takes the text of a configuration, gives its record.
import { loadPyodide } from "../../live/pyodide/pyodide.mjs";

const folder = new URL("../../live/", import.meta.url);

// Pyodide fetches its own files; what comes is counted on the way.
const fetched = self.fetch;
let loaded = 0;
self.fetch = async (...request) => {
  const response = await fetched(...request);
  if (!response.ok || !response.body) return response;
  const counter = new TransformStream({
    transform(chunk, controller) {
      loaded += chunk.byteLength;
      self.postMessage({ loaded });
      controller.enqueue(chunk);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(counter), { status, statusText, headers });
};

async function ledger() {
  const python = await loadPyodide({ indexURL: new URL("pyodide/", folder).href });
  const archive = await fetch(new URL("ledger.zip", folder));
  if (!archive.ok) throw new Error(`ledger.zip: ${archive.status}`);
  python.FS.writeFile("/ledger.zip", new Uint8Array(await archive.arrayBuffer()));
  python.runPython('import sys; sys.path.insert(0, "/ledger.zip")');
  return python.pyimport("archcards.ledger.portable");
}

const loading = ledger();
loading.then(
  () => self.postMessage({ ready: true }),
  (reason) => self.postMessage({ failed: `Python could not be loaded: ${reason.message}` }),
);
self.addEventListener("message", async ({ data: { number, text } }) => {
  self.postMessage({ number, answer: (await loading).answer(text) });
});
