// What is shown of one model or two: a table, and the JSON to take away.
import { make } from "./make.js";
import { cache, entries, flops, scalars } from "./terms.js";

export const grouped = (number) => `${number}`.replace(/\B(?=(\d{3})+$)/g, ",");

/** Bytes as GiB, three digits after the point, rounded half up; more when there is little. */
export function gib(bytes) {
  const unit = 2n ** 30n;
  const digits = bytes >= unit / 10n ? 3n : 6n;
  const scaled = (bytes * 10n ** digits * 2n + unit) / (2n * unit);
  const text = `${scaled}`.padStart(Number(digits) + 1, "0");
  return `${grouped(text.slice(0, -Number(digits)))}.${text.slice(-Number(digits))}`;
}

/** The counts of a model, or the ledger's refusal in place of its cache. */
export function counted(model, view, formats) {
  const own = { ...view, context: model.image_sequence === null ? view.context : BigInt(model.image_sequence) };
  if (!model.encoder) own.source = 0n;
  const found = { own, flops: flops(model, own), cache: null, refused: "" };
  try {
    found.cache = cache(model, own, formats);
  } catch (reason) {
    if (!(reason instanceof RangeError)) throw reason;
    found.refused = reason.message;
  }
  return found;
}

const words = (kind) => kind.replaceAll("_", " ").replace("keys values", "keys and values");

function working(term, view) {
  const number = grouped(scalars(term, view));
  if (BigInt(term.fixed_scalars)) return `${words(term.kind)}: ${term.layers} layers, fixed = ${number}`;
  const held = grouped(entries(term, view));
  const stride = term.stride > 1 ? ` (one per ${term.stride})` : "";
  const limit = term.limit === null ? "" : ` (at most ${grouped(term.limit)})`;
  return `${words(term.kind)}: ${term.layers} layers × ${grouped(term.scalars_per_token)} × ${held}${stride}${limit} = ${number}`;
}

const growing = (kept, name) => (kept[name] === null ? "not whole" : grouped(kept[name]));

const GROUPS = [
  ["parameters", "Parameters", [
    ["all", ({ model }) => grouped(model.parameters.total)],
    ["of the vision tower", ({ model }) => model.parameters.vision && grouped(model.parameters.vision)],
    ["beside them, for further tokens", ({ model }) => model.parameters.multi_token_prediction && grouped(model.parameters.multi_token_prediction)],
    ["active, with both tables", ({ model }) => grouped(model.parameters.active.with_embeddings)],
    ["active, without the input table", ({ model }) => grouped(model.parameters.active.without_input_embedding)],
    ["active, without either", ({ model }) => grouped(model.parameters.active.without_embeddings)],
  ]],
  ["cache", "Cache and state, of all sequences", [
    ["bytes", ({ cache }) => cache && grouped(cache.bytes)],
    ["GiB", ({ cache }) => cache && gib(cache.bytes)],
    ["scalars", ({ cache }) => cache && grouped(cache.scalars)],
  ]],
  ["cache", "Cache and state, of one sequence", [
    ["scalars a token adds", ({ cache }) => cache && growing(cache, "scalars_per_token")],
    ["the same once every window is full", ({ cache }) => cache && cache.scalars_per_token_beyond_limits !== cache.scalars_per_token && growing(cache, "scalars_per_token_beyond_limits")],
    ["scalars a source token adds", ({ cache }) => cache?.scalars_per_source_token && grouped(cache.scalars_per_source_token)],
    ["fixed state, in scalars", ({ cache }) => cache && grouped(cache.fixed_scalars)],
    ["term by term", ({ cache, own }) => cache?.terms.length ? make("ul", null, ...cache.terms.map((term) => make("li", null, working(term, own)))) : null],
  ]],
  ["flops", "FLOPs of one more token", [
    ["all", ({ flops }) => grouped(flops.per_token.total)],
    ["weights", ({ flops }) => grouped(flops.per_token.matmul)],
    ["attention and memory", ({ flops }) => grouped(flops.per_token.attention)],
  ]],
  ["flops", "FLOPs of the whole sequence", [
    ["all", ({ flops }) => grouped(flops.per_sequence.total)],
    ["weights", ({ flops }) => grouped(flops.per_sequence.matmul)],
    ["attention and memory", ({ flops }) => grouped(flops.per_sequence.attention)],
    ["training, a token", ({ flops }) => grouped(flops.training_per_token.three_times_forward)],
  ]],
];

/** The table of `shown` (name, address, model and counts of each), of the groups with these names. */
export function table(shown, groups) {
  const heads = shown.map(({ name, address }) =>
    make("th", { scope: "col", class: "ac-number" }, address ? make("a", { href: address }, name) : name),
  );
  const bodies = GROUPS.filter(([group]) => groups.includes(group)).flatMap(([, heading, lines]) => {
    const kept = lines
      .map(([label, value]) => [label, shown.map(value)])
      .filter(([, cells]) => cells.some(Boolean))
      .map(([label, cells]) =>
        make(
          "tr",
          null,
          make("th", { scope: "row" }, label),
          ...cells.map((cell) => make("td", { class: cell instanceof Node ? "ac-live__terms" : "ac-number" }, cell || "–")),
        ),
      );
    const above = make("tr", { class: "ac-live__group" }, make("th", { scope: "rowgroup", colspan: shown.length + 1 }, heading));
    return kept.length ? [make("tbody", null, above, ...kept)] : [];
  });
  return make(
    "div",
    { class: "ac-table", role: "region", tabindex: "0", "aria-label": "The ledger" },
    make(
      "table",
      { class: "ac-paper" },
      make("caption", { class: "ac-unseen" }, "The ledger"),
      make("thead", null, make("tr", null, make("td"), ...heads)),
      ...bodies,
    ),
  );
}

/** Whole numbers as JSON has them, however large; a model's large ones came as strings. */
function exact(value) {
  if (typeof value === "bigint") return `#${value}#`;
  if (typeof value === "string" && /^\d{16,}$/.test(value)) return `#${value}#`;
  if (Array.isArray(value)) return value.map(exact);
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, exact(one)]));
  }
  return value;
}

/** As `archcards ledger --json` prints it, without the list of layers; its notes are the reader's. */
export function json(shown) {
  const records = shown.map(({ name, model, cache, flops }) => ({
    model: name,
    model_type: model.model_type,
    parameters: model.parameters,
    cache,
    flops,
    notes: model.notes,
  }));
  const value = exact(records.length === 1 ? records[0] : records);
  return JSON.stringify(value, null, 2).replace(/"#(\d+)#"/g, "$1");
}
