// Memory over the context, of as many models as the reader chooses, and where their lines cross.
import { chart, UNITS } from "./chart.js";
import { known } from "./known.js";
import { field, make } from "./make.js";
import { gib, grouped } from "./result.js";
import { cache, fixedBytes, terms } from "./terms.js";

const VIEW = { batch: 1n, source: 0n, dtype: "bf16", state: "bf16", ranks: 1, reserve: "need" };
// Contexts of the chart are powers of two with three steps between them.
const [FIRST, LAST, STEPS] = [4, 20, 4];
const LARGEST = 2n ** BigInt(LAST);
const length = (step) => BigInt(Math.round(2 ** (FIRST + step / STEPS)));

const bytes = (model, context) => cache(model, { ...VIEW, context }, known.formats).bytes;

/** What a model's memory is made of: `attention`, `windows`, `state`, or several of them. */
function made(model) {
  const found = terms(model, VIEW.ranks, VIEW.reserve);
  const growing = found.filter((term) => !BigInt(term.fixed_scalars));
  return [
    growing.some((term) => term.limit === null) && "attention",
    growing.some((term) => term.limit !== null) && "windows",
    growing.length < found.length && "state",
  ].filter(Boolean);
}

/**
 * The stretches of lengths, up to the largest of the chart, in which `one` takes more bytes than
 * `other`: [from, to] each, `to` null where it goes on to the end.
 *
 * Between two lengths at which something reaches its limit both are straight lines, which cross
 * once at most.
 */
export function above(one, other) {
  const more = (context) => bytes(one, context) > bytes(other, context);
  const corners = [one, other]
    .flatMap((model) => terms(model, VIEW.ranks, VIEW.reserve))
    .filter((term) => term.limit !== null)
    .map((term) => BigInt(term.limit))
    .filter((limit) => limit < LARGEST);
  const ends = [...new Set([1n, ...corners, LARGEST])].sort((a, b) => (a < b ? -1 : 1));
  const found = [];
  let since = more(1n) ? 1n : null;
  for (let place = 1; place < ends.length; place++) {
    let [low, high] = [ends[place - 1], ends[place]];
    const before = more(low);
    if (more(high) === before) continue;
    while (high - low > 1n) {
      const middle = (low + high) / 2n;
      if (more(middle) === before) low = middle;
      else high = middle;
    }
    if (before) {
      found.push([since, low]);
      since = null;
    } else since = high;
  }
  return since === null ? found : [...found, [since, null]];
}

/** A table whose numbers are set to the right. */
function table(caption, heads, rows) {
  const kind = (place) => (rows.length && /^\d/.test(rows[0][place]) ? "ac-number" : "");
  return make(
    "div",
    { class: "ac-table", role: "region", tabindex: "0", "aria-label": caption },
    make(
      "table",
      { class: "ac-paper" },
      make("caption", null, `${caption}.`),
      make("thead", null, make("tr", null, ...heads.map((text, place) => make("th", { scope: "col", class: kind(place) }, text)))),
      make(
        "tbody",
        null,
        ...rows.map((cells) =>
          make(
            "tr",
            null,
            ...cells.map((text, place) => (place ? make("td", { class: kind(place) }, text) : make("th", { scope: "row" }, text))),
          ),
        ),
      ),
    ),
  );
}

export function mount(place, signal) {
  const models = place.dataset.models.split(" ").map((name, order) => ({
    name: name.split("/").pop(),
    model: known.models[name],
    box: make("input", { type: "checkbox", checked: order < 4 }),
    class: `ac-chart__line--${order}`,
  }));
  const range = make("input", { type: "range", min: 0, max: (LAST - FIRST) * STEPS, value: 9 * STEPS });
  const context = field("Tokens of context", range, make("output", { class: "ac-growth__context" }));
  const drawing = make("div", { class: "ac-live__drawing" });
  const answer = make("div");
  const choices = make(
    "fieldset",
    { class: "ac-growth__models" },
    make("legend", null, "Models, and what they keep"),
    ...models.map((one) =>
      make(
        "label",
        null,
        one.box,
        make("span", { class: `ac-live__swatch ${one.class}` }),
        `${one.name} `,
        make("small", null, made(one.model).join(" and ")),
      ),
    ),
  );
  const form = make(
    "form",
    { class: "ac-live__form", "aria-label": "Cache and state over the context", onsubmit: (event) => event.preventDefault() },
    choices,
    context.element,
  );
  place.replaceChildren(form, make("div", { class: "ac-live__figure" }, drawing), answer);

  const chosen = () => models.filter(({ box }) => box.checked);

  function picture() {
    const at = length(Number(range.value));
    const shown = chosen();
    const contexts = Array.from({ length: Number(range.max) + 1 }, (_, step) => length(step));
    const lines = shown.map((one) => ({
      ...one,
      points: contexts.map((context) => [Number(context), Number(bytes(one.model, context))]),
    }));
    const label = `Lines of the memory of one sequence over ${length(0)} to ${grouped(LARGEST)} tokens, both axes logarithmic: ${shown.map(({ name }) => name).join("; ")}. The table below has the numbers at the chosen context, and where lines cross.`;
    drawing.replaceChildren(
      lines.length
        ? chart({ lines, unit: UNITS.bytes, at: Number(at), label, width: Math.max(240, Math.min(drawing.clientWidth || 640, 760)) })
        : "Choose a model.",
    );
  }

  function update() {
    const at = length(Number(range.value));
    const tokens = `${grouped(at)} tokens`;
    range.setAttribute("aria-valuetext", tokens);
    context.element.querySelector("output").textContent = tokens;
    const shown = chosen();
    const sizes = shown.map(({ name, model }) => {
      const kept = bytes(model, at);
      return [name, grouped(kept), gib(kept), grouped(fixedBytes(model, VIEW, known.formats))];
    });
    const crossings = shown
      .flatMap((one) => shown.flatMap((other) => above(one.model, other.model).map(([from]) => [from, one.name, other.name])))
      .filter(([from]) => from > 1n)
      .sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0))
      .map(([from, one, other]) => [one, other, grouped(from)]);
    answer.replaceChildren(
      table(`One sequence at ${tokens}, two bytes a scalar`, ["model", "bytes", "GiB", "of it fixed, bytes"], sizes),
      crossings.length
        ? table(`Where lines cross, up to ${grouped(LARGEST)} tokens`, ["model", "keeps more than", "from, in tokens"], crossings)
        : "",
    );
    picture();
  }
  form.addEventListener("input", update);
  const resized = new ResizeObserver(() => picture());
  resized.observe(place);
  signal.addEventListener("abort", () => resized.disconnect());
  update();
}
