// The live ledger: a model or two, any context; answers from the terms that the build wrote.
import { chart, UNITS } from "./chart.js";
import { known, SITE } from "./known.js";
import { choice, field, make, unique } from "./make.js";
import { own } from "./own.js";
import { counted, gib, grouped, json, table } from "./result.js";
import { fixedBytes, number } from "./terms.js";

const LEDGER = new URL("models/live/", SITE);
const OWN = "own";
const PREFIX = "#ledger:";
const DEFAULTS = { context: "8192", batch: "1", source: "1024", dtype: "bf16", state: "", ranks: "1", reserve: "need", chart: "cache" };
const CHARTS = [
  ["cache", "cache and state"],
  ["token", "FLOPs of one more token"],
  ["sequence", "FLOPs of the sequence"],
];
// What a chapter shows of it: the fields, the charts, and the groups of the table.
const WHOLE = { asks: Object.keys(DEFAULTS), charts: CHARTS.map(([name]) => name), groups: ["parameters", "cache", "flops"] };
const PARTS = {
  cache: { ...WHOLE, charts: ["cache"], groups: ["cache"] },
  parameters: { asks: [], charts: [], groups: ["parameters"] },
  flops: { asks: ["context", "source"], charts: ["token", "sequence"], groups: ["flops"] },
};
// A configuration travels in the address if it is no longer than this.
const LONGEST_CONFIG = 8000;

/** What the address asks for: a whole view, or, in a link from a model's page, the model alone. */
function asking() {
  if (location.hash.startsWith(PREFIX)) return new URLSearchParams(location.hash.slice(PREFIX.length));
  const given = new URLSearchParams(location.search);
  return given.has("a") ? given : null;
}

export function mount(place, signal) {
  const names = Object.keys(known.models);
  const models = [...names.map((name) => [name]), [OWN, "your own config.json"]];
  const { part } = place.dataset;
  const { asks, charts, groups } = PARTS[part] ?? WHOLE;
  // The address holds the view of one whole ledger; a chapter's address is the chapter's.
  const addressed = !part && document.querySelector("ac-live:not([data-part])") === place;

  // What is asked

  const sides = ["Model", "Beside it"].map((label, side) => {
    const chosen = side === 0 ? place.dataset.first || names[0] : place.dataset.second || "";
    const options = side === 0 ? models : [["", "no other model"], ...models];
    const select = field(label, choice(options, chosen));
    const panel = own(known.runtime, () => update(), signal);
    return { select, panel, chosen, element: make("div", null, select.element, panel.element) };
  });
  const range = make("input", { type: "range", min: 7, max: 24, step: 1, "aria-label": "Context, as a power of two" });
  const text = () => make("input", { type: "text", inputmode: "numeric", autocomplete: "off" });
  const formats = Object.keys(known.formats).map((name) => [name]);
  const fields = {
    context: field("Context, in tokens", text(), range),
    batch: field("Sequences (batch)", text()),
    source: field("Tokens of the source", text()),
    dtype: field("Cache stored as", choice(formats)),
    state: field("State stored as", choice([["", "as the cache"], ...formats])),
    ranks: field("Tensor-parallel ranks", choice(known.ranks.map((ranks) => [`${ranks}`]))),
    reserve: field(
      "Windows hold",
      choice([["need", "what they need"], ["full", "the whole context"]]),
    ),
  };
  const radios = unique();
  const pictures = make(
    "fieldset",
    { class: "ac-live__pictures" },
    make("legend", null, "Over the context"),
    ...CHARTS.filter(([value]) => charts.includes(value)).map(([value, label]) =>
      make("label", null, make("input", { type: "radio", name: radios, value }), label),
    ),
  );
  pictures.hidden = charts.length < 2;
  const asked = {
    get: (name) => (name === "chart" ? pictures.querySelector(":checked")?.value ?? DEFAULTS.chart : fields[name].control.value),
    set: (name, value) => {
      if (name === "chart") {
        const radio = pictures.querySelector(`[value="${CSS.escape(value)}"]`) ?? pictures.querySelector("input");
        if (radio) radio.checked = true;
        return;
      }
      const { control } = fields[name];
      control.value = value;
      // A value that a list does not have leaves it empty.
      if (control instanceof HTMLSelectElement && control.selectedIndex < 0) control.value = DEFAULTS[name];
    },
  };

  // What is answered

  const summary = make("p", { class: "ac-live__summary", role: "status" });
  const result = make("div");
  const remarks = make("ul", { class: "ac-live__notes" });
  const legend = make("ul", { class: "ac-live__legend" });
  const drawing = make("div", { class: "ac-live__drawing" });
  const code = make("code");
  const copyJson = copier("Copy the JSON", () => code.textContent);
  const copyLink = copier("Copy a link to this view", () => new URL(fragment(), LEDGER).href);
  const whole = make("a", { href: LEDGER.href }, "Open this view in the live ledger");

  const form = make(
    "form",
    { class: "ac-live__form", "aria-label": part ? `Live ledger: ${part}` : "Live ledger", onsubmit: (event) => event.preventDefault() },
    make("div", { class: "ac-live__models" }, ...sides.map((side) => side.element)),
    make("div", { class: "ac-live__view" }, ...asks.filter((name) => name in fields).map((name) => fields[name].element)),
  );
  place.replaceChildren(
    form,
    summary,
    charts.length ? make("div", { class: "ac-live__figure" }, pictures, drawing, legend) : "",
    result,
    remarks,
    ...(part
      ? [make("p", { class: "ac-live__remark" }, whole)]
      : [
          make("p", { class: "ac-live__buttons" }, copyLink, copyJson),
          make("details", null, make("summary", null, "The same as JSON"), make("pre", { tabindex: "0" }, code)),
        ]),
  );
  place.classList.add("ac-live--on");

  function view() {
    const least = { context: 1, batch: 1, source: 0 };
    const found = { dtype: asked.get("dtype"), state: asked.get("state") || asked.get("dtype"), ranks: Number(asked.get("ranks")), reserve: asked.get("reserve") };
    let wrong = false;
    for (const name of ["context", "batch", "source"]) {
      const called = name === "source" ? "source_length" : name;
      try {
        found[name] = number(called, asked.get(name), least[name], known.largest_length);
        fields[name].refuse("");
      } catch (reason) {
        fields[name].refuse(reason.message);
        wrong ||= name !== "source" || !fields.source.element.hidden;
        found[name] = 0n;
      }
    }
    return wrong ? null : found;
  }

  function shownModels() {
    return sides.flatMap(({ select, panel }) => {
      const name = select.control.value;
      if (!name) return [];
      if (name === OWN) return panel.record ? [{ name: "config.json", model: panel.record, address: null }] : [];
      const model = known.models[name];
      return [{ name, model, address: new URL(model.page, SITE).href }];
    });
  }

  let shown = [];
  let current = null;

  function update() {
    for (const { select, panel } of sides) panel.element.hidden = select.control.value !== OWN;
    const chosen = shownModels();
    fields.source.element.hidden = !chosen.some(({ model }) => model.encoder);
    current = view();
    if (current) range.value = `${Math.round(Math.log2(Number(current.context)))}`;
    shown = current ? chosen.map((one) => ({ ...one, ...counted(one.model, current, known.formats) })) : [];
    const refusals = shown.filter((one) => one.refused).map((one) => (shown.length > 1 ? `${one.name}: ${one.refused}` : one.refused));
    fields.ranks.refuse(refusals.join("; "));
    summary.textContent = current
      ? shown.length
        ? shown.map(said).join(" ")
        : "Paste a configuration and press Count."
      : "";
    result.replaceChildren(...(shown.length ? [table(shown, groups)] : []));
    remarks.replaceChildren(...shown.flatMap(noted));
    code.textContent = shown.length ? json(shown) : "";
    copyJson.disabled = !shown.length;
    whole.href = new URL(fragment(), LEDGER).href;
    picture();
  }

  function said({ name, model, cache: kept, own: of, flops: work }) {
    const found = [];
    if (groups.includes("parameters") && part) {
      found.push(`${grouped(model.parameters.total)} parameters, ${grouped(model.parameters.active.with_embeddings)} of them active`);
    }
    if (groups.includes("cache")) {
      if (!model.decodes) found.push("no decoding, so no cache");
      else if (kept) found.push(`${gib(kept.bytes)} GiB of cache at ${grouped(of.context)} tokens`);
    }
    if (groups.includes("flops")) found.push(`${grouped(work.per_token.total)} FLOPs a token`);
    return found.length ? `${name}: ${found.join(", ")}.` : "";
  }

  function noted({ name, model, own: of }) {
    const found = [...model.notes];
    if (model.image_sequence !== null) found.push(`one image is a sequence of ${model.image_sequence} tokens, whatever context was asked for`);
    else if (model.trained_length !== null && of.context > BigInt(model.trained_length)) {
      found.push(`${of.context} tokens are more than the ${model.trained_length} the configuration allows for`);
    }
    return found.map((note) => make("li", null, shown.length > 1 ? `${name}: ${note}` : note));
  }

  function picture() {
    if (!charts.length) return;
    const which = asked.get("chart");
    const lines = [];
    const last = Math.max(20, current ? Math.ceil(Math.log2(Number(current.context))) : 0);
    const contexts = Array.from({ length: (last - 7) * 4 + 1 }, (_, step) => BigInt(Math.round(2 ** (7 + step / 4))));
    shown.forEach(({ name, model }, side) => {
      if (model.image_sequence !== null) return;
      const points = contexts.map((context) => {
        const found = counted(model, { ...current, context }, known.formats);
        const value = which === "cache" ? found.cache?.bytes : which === "token" ? found.flops.per_token.total : found.flops.per_sequence.total;
        return [Number(context), Number(value ?? 0n)];
      });
      if (points.some(([, y]) => y > 0)) lines.push({ name, class: `ac-chart__line--${side}`, points });
      const fixed = which === "cache" && !lines.at(-1)?.refused && points.some(([, y]) => y > 0) ? Number(fixedBytes(model, current, known.formats)) : 0;
      if (fixed) {
        lines.push({
          name: `${name}, its fixed state alone`,
          class: `ac-chart__line--${side} ac-chart__line--fixed`,
          points: [[Number(contexts[0]), fixed], [Number(contexts.at(-1)), fixed]],
        });
      }
    });
    const title = CHARTS.find(([value]) => value === which)[1];
    drawing.replaceChildren(
      lines.length
        ? chart({
            lines,
            unit: which === "cache" ? UNITS.bytes : UNITS.flops,
            at: Number(current.context),
            label: `Lines of ${title} over 128 to ${grouped(contexts.at(-1))} tokens, both axes logarithmic: ${lines.map((line) => line.name).join("; ")}. The table below has the numbers at the chosen context.`,
            width: Math.max(260, Math.min(drawing.clientWidth || 640, 760)),
          })
        : "",
    );
    legend.replaceChildren(...lines.map((line) => make("li", null, make("span", { class: `ac-live__swatch ${line.class}` }), line.name)));
  }

  // The view in the address

  function fragment() {
    const found = new URLSearchParams();
    sides.forEach(({ select, panel }, side) => {
      const name = "ab"[side];
      if (select.control.value) found.set(name, select.control.value);
      if (select.control.value === OWN && panel.text.length <= LONGEST_CONFIG) found.set(`${name}-config`, panel.text);
    });
    for (const name of Object.keys(DEFAULTS)) if (asked.get(name) !== DEFAULTS[name]) found.set(name, asked.get(name));
    return PREFIX + found.toString();
  }

  function restore() {
    const given = addressed ? asking() : null;
    sides.forEach((side, place) => {
      const name = "ab"[place];
      const wanted = given ? given.get(name) ?? "" : side.chosen;
      side.select.control.value = wanted;
      if (side.select.control.selectedIndex < 0) side.select.control.value = place ? "" : names[0];
      if (given?.has(`${name}-config`)) side.panel.text = given.get(`${name}-config`);
    });
    for (const [name, value] of Object.entries(DEFAULTS)) asked.set(name, given?.get(name) ?? value);
    update();
  }

  const changed = (event) => {
    if (event.target === range) asked.set("context", `${2 ** Number(range.value)}`);
    update();
    if (addressed) history.replaceState(history.state, "", fragment());
  };
  form.addEventListener("input", changed);
  pictures.addEventListener("input", changed);
  if (addressed) addEventListener("hashchange", () => location.hash.startsWith(PREFIX) && restore(), { signal });
  const resized = new ResizeObserver(() => picture());
  resized.observe(place);
  signal.addEventListener("abort", () => resized.disconnect());
  restore();
}

function copier(label, text) {
  const button = make("button", { type: "button" }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "The browser does not allow to copy";
    }
    setTimeout(() => (button.textContent = label), 2000);
  });
  return button;
}
