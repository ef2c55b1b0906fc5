// Masks to try: what each query reads, how many pairs that is, and the closed form of it.
import { choice, draw, field, make } from "./make.js";

const MOST = 24;
// A cell's side, in pixels: what the width allows, within bounds.
const [SMALLEST, LARGEST] = [16, 32];

/** Whether the query at position `p` reads key `j`; as archcards.mechanisms.masks says. */
function reads({ reach, size, sinks, tokens }, p, j) {
  if (j > p) return false;
  if (j < sinks || tokens.includes(j) || tokens.includes(p)) return true;
  if (reach === "window") return j > p - size;
  if (reach === "chunks") return Math.floor(j / size) === Math.floor(p / size);
  return true;
}

const triangle = (n) => (n * (n + 1)) / 2;

/** Pairs without sinks and global token: the formula with the numbers put in, and its value. */
function closed({ reach, size, queries, before }) {
  if (reach === "window") {
    const m = Math.max(0, Math.min(queries, size - 1 - before));
    const value = m * before + triangle(m) + (queries - m) * size;
    if (m === 0) return [`${queries} · ${size}`, value];
    const growing = before ? `${m} · ${before} + ${m} · ${m + 1} / 2` : `${m} · ${m + 1} / 2`;
    return [queries > m ? `${growing} + ${queries - m} · ${size}` : growing, value];
  }
  if (reach === "chunks") {
    // Whole chunks and a rest, up to the end and up to the first query.
    const upTo = (length) => Math.floor(length / size) * triangle(size) + triangle(length % size);
    const shown = (length) => `⌊${length} / ${size}⌋ · ${size} · ${size + 1} / 2 + ${length % size} · ${(length % size) + 1} / 2`;
    const last = before + queries;
    return [before ? `(${shown(last)}) − (${shown(before)})` : shown(last), upTo(last) - upTo(before)];
  }
  const own = `${queries} · ${queries + 1} / 2`;
  return [before ? `${queries} · ${before} + ${own}` : own, queries * before + triangle(queries)];
}

export function mount(place) {
  const count = (value, min, max) => make("input", { type: "number", value, min, max, step: 1, required: true });
  const fields = {
    queries: field("Queries", count(8, 1, MOST)),
    before: field("Keys before the first query", count(0, 0, MOST)),
    reach: field("Each query reads", choice([["all", "everything before it"], ["window", "a window"], ["chunks", "its own chunk"]], "window")),
    size: field("Window or chunk, in tokens", count(3, 1, 2 * MOST)),
    sinks: field("Sinks: first keys kept", count(0, 0, MOST)),
    tokens: field("Global tokens at positions", make("input", { type: "text", inputmode: "numeric", autocomplete: "off", placeholder: "none" })),
  };
  const said = make("p", { class: "ac-live__summary", role: "status" });
  const picture = make("div", { class: "ac-live__drawing", role: "region", "aria-label": "The mask", tabindex: "0" });
  const form = make(
    "form",
    { class: "ac-live__form ac-live__view", "aria-label": "Masks", onsubmit: (event) => event.preventDefault() },
    ...Object.values(fields).map((one) => one.element),
  );
  place.replaceChildren(form, said, picture);

  function update() {
    fields.size.element.hidden = fields.reach.control.value === "all";
    const asked = { reach: fields.reach.control.value };
    let wrong = false;
    const refuse = (name, reason) => {
      fields[name].refuse(reason);
      wrong ||= reason !== "";
    };
    for (const name of ["queries", "before", "size", "sinks"]) {
      const { control } = fields[name];
      refuse(name, control.validity.valid ? "" : `${name}: expected a whole number from ${control.min} to ${control.max}`);
      asked[name] = Number(control.value);
    }
    const { queries, before } = asked;
    const keys = before + queries;
    const positions = fields.tokens.control.value.split(/[\s,]+/).filter(Boolean);
    const outside = positions.find((text) => !/^\d{1,3}$/.test(text) || Number(text) >= keys);
    refuse("tokens", outside === undefined || wrong ? "" : `tokens: expected positions from 0 to ${keys - 1}, came ${outside.slice(0, 20)}`);
    if (wrong) return;
    asked.tokens = positions.map(Number);
    const rows = Array.from({ length: queries }, (_, query) =>
      Array.from({ length: keys }, (_, key) => reads(asked, before + query, key)),
    );
    const each = rows.map((row) => row.filter(Boolean).length);
    const edges = each.reduce((all, one) => all + one, 0);
    const [formula, base] = closed(asked);
    const extra = edges - base ? ` and ${edges - base} more by sinks and global tokens` : "";
    said.textContent = `${edges} pairs of ${queries * keys}: ${formula} = ${base}${extra}. Keys read by each query: ${each.join(", ")}.`;
    place.dataset.edges = `${edges}`;
    const side = Math.max(SMALLEST, Math.min(LARGEST, Math.floor(picture.clientWidth / keys)));
    const cells = rows.flatMap((row, y) =>
      row.map((read, x) =>
        draw("rect", {
          class: read ? (x === before + y ? "ac-masks__self" : "ac-masks__read") : "ac-masks__hidden",
          x: x * side + 1, y: y * side + 1, width: side - 2, height: side - 2,
        }),
      ),
    );
    const label = `A grid of ${queries} queries, one below the other, by ${keys} keys; query by query it marks ${each.join(", ")} keys as read.`;
    picture.replaceChildren(
      draw("svg", { role: "img", "aria-label": label, width: keys * side, height: queries * side }, ...cells),
    );
  }
  form.addEventListener("input", update);
  update();
}
