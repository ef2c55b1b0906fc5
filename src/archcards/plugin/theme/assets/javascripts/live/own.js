// A reader's own configuration: pasted, dropped or chosen, and counted by the ledger.
import { field, make } from "./make.js";
import { answer } from "./python.js";

const MEGABYTE = 1e6;

/** The panel; `counted` is told of each record, `runtime` is what the site can load (or null). */
export function own(runtime, counted, signal) {
  let record = null;
  let control = null;
  const area = make("textarea", { rows: 7, spellcheck: "false", autocomplete: "off", placeholder: '{"model_type": "llama", …}' });
  const file = make("input", { type: "file", accept: ".json,application/json", class: "ac-unseen" });
  const choose = make("button", { type: "button", onclick: () => file.click() }, "Open a file");
  const count = make("button", { type: "button", class: "ac-live__main" }, "Count");
  const cancel = make("button", { type: "button", hidden: true, onclick: () => control?.abort() }, "Cancel");
  const bar = make("progress", { max: 1, value: 0, "aria-label": "Loading Python" });
  const told = make("span", { role: "status" });
  const come = make("span", { "aria-hidden": "true" });
  const waiting = make("p", { class: "ac-live__waiting", hidden: true }, bar, told, come);
  const given = field("config.json", area);
  signal.addEventListener("abort", () => control?.abort());
  file.tabIndex = -1;
  file.setAttribute("aria-label", "A config.json from your disk");

  const size = runtime ? runtime["pyodide.asm.wasm"] + runtime["python_stdlib.zip"] : 0;
  const remark = runtime
    ? "Read by the same Python ledger, here in your browser: nothing leaves it. Python itself " +
      `(${Math.round(size / MEGABYTE)} MB, less when compressed) is loaded from this site the first time.`
    : "This copy of the site was built without npm and lacks Python for the browser. " +
      "The command archcards ledger config.json prints the same numbers.";
  count.disabled = runtime === null;

  const forget = () => {
    record = null;
    given.refuse("");
    counted();
  };
  const read = async (chosen) => {
    if (!chosen) return;
    area.value = await chosen.text();
    forget();
  };
  area.addEventListener("input", forget);
  area.addEventListener("dragover", (event) => event.preventDefault());
  area.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    read(event.dataTransfer.files[0]);
  });
  file.addEventListener("change", () => read(file.files[0]).finally(() => (file.value = "")));

  count.addEventListener("click", async () => {
    control = new AbortController();
    given.refuse("");
    waiting.hidden = cancel.hidden = false;
    cancel.focus();
    count.disabled = true;
    told.textContent = "Loading Python";
    const progress = (bytes) => {
      bar.value = Math.min(bytes / size, 1);
      come.textContent = bytes < size ? `${(bytes / MEGABYTE).toFixed(1)} of ${(size / MEGABYTE).toFixed(1)} MB` : "";
      if (bytes >= size) told.textContent = "Counting";
    };
    try {
      record = await answer(area.value, { progress, signal: control.signal });
    } catch (reason) {
      record = null;
      if (reason.name !== "AbortError") given.refuse(reason.message);
    }
    const focused = document.activeElement === cancel;
    count.disabled = false;
    if (focused) count.focus();
    waiting.hidden = cancel.hidden = true;
    counted();
  });

  return {
    element: make(
      "div",
      { class: "ac-live__own" },
      given.element,
      make("p", { class: "ac-live__buttons" }, count, cancel, choose, file),
      waiting,
      make("p", { class: "ac-live__remark" }, remark),
    ),
    get record() {
      return record;
    },
    get text() {
      return area.value;
    },
    set text(value) {
      if (value === area.value) return;
      area.value = value;
      record = null;
    },
  };
}
