// The tables of a block, gone through row by row: what an online softmax holds after each piece.
// Every number is the table's; the picture draws the weights that stand in it.
import { draw, field, make, unique } from "./make.js";

const WEIGHTS = "weights below it";
const [BAR, GAP, HIGH, FOOT, HEAD] = [30, 18, 110, 22, 20];

/** A table as what was read and weighed at each step. */
function read(table) {
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const rows = [...table.tBodies[0].rows];
  const steps = rows.map((row) => {
    const cells = [...row.cells].map((cell) => cell.textContent);
    return { cells, weights: cells[heads.indexOf(WEIGHTS)].split(" ").filter(Boolean) };
  });
  const scores = [];
  for (const { cells, weights } of steps) if (weights.length > scores.length) scores.push(...cells[0].split(", "));
  return { table, heads, rows, steps, scores, caption: table.caption.textContent };
}

export function mount(place) {
  const found = [...document.getElementById(place.dataset.of).querySelectorAll("table")].map(read);
  const name = unique();
  const choices = make(
    "fieldset",
    { class: "ac-live__pictures" },
    make("legend", null, "One row of scores"),
    ...found.map(({ caption }, order) =>
      make("label", null, make("input", { type: "radio", name, value: order, checked: order === 0 }), caption.replace(/\.$/, "")),
    ),
  );
  const range = make("input", { type: "range", min: 1, value: 1 });
  const back = make("button", { type: "button" }, "Back");
  const next = make("button", { type: "button", class: "ac-live__main" }, "Next");
  const step = field("Step", range);
  const said = make("p", { class: "ac-live__summary", role: "status" });
  const drawing = make("div", { class: "ac-steps__drawing" });
  const form = make(
    "form",
    { class: "ac-live__form", "aria-label": "Step by step", onsubmit: (event) => event.preventDefault() },
    choices,
    make("div", { class: "ac-steps__walk" }, back, step.element, next),
  );
  place.replaceChildren(form, drawing, said);

  let shown = null;
  let bars = [];

  /** The picture of a row of which nothing is read yet: a bar for each key. */
  function begin(order) {
    shown = found[order];
    for (const { table, rows } of found) {
      table.closest(".ac-table").hidden = table !== shown.table;
      rows.forEach((row) => row.removeAttribute("aria-current"));
    }
    range.max = shown.steps.length;
    range.value = 1;
    const [width, height] = [shown.scores.length * (BAR + GAP), HEAD + HIGH + FOOT];
    bars = shown.scores.map((score, key) => {
      const x = key * (BAR + GAP) + GAP / 2;
      return {
        bar: draw("rect", { x, width: BAR, y: HEAD, height: HIGH, class: "ac-steps__bar" }),
        weight: draw("text", { x: x + BAR / 2, y: HEAD - 6, class: "ac-steps__number" }),
        score: draw("text", { x: x + BAR / 2, y: height - 5, class: "ac-steps__number" }, score),
      };
    });
    drawing.replaceChildren(
      draw(
        "svg",
        { role: "img", width, height, viewBox: `0 0 ${width} ${height}` },
        ...bars.flatMap(({ bar, weight, score }) => [bar, weight, score]),
        draw("line", { x1: 0, x2: width, y1: HEAD + HIGH, y2: HEAD + HIGH, class: "ac-chart__axis" }),
      ),
    );
  }

  function update() {
    const at = Number(range.value) - 1;
    const { cells, weights } = shown.steps[at];
    const before = at ? shown.steps[at - 1].weights.length : 0;
    bars.forEach(({ bar, weight, score }, key) => {
      const share = key < weights.length ? Number(weights[key]) : 0;
      // Heights change by transform, which a style sheet can let take its time.
      bar.setAttribute("transform", `translate(0 ${(HEAD + HIGH) * (1 - share)}) scale(1 ${share})`);
      const state = key >= weights.length ? "unread" : key >= before ? "now" : "read";
      for (const one of [bar, score]) one.setAttribute("data-state", state);
      weight.textContent = weights[key] ?? "";
    });
    drawing.firstChild.setAttribute(
      "aria-label",
      `A bar for each key, as high as its weight below the largest score so far: ${weights.join(", ") || "none"}; ${bars.length - weights.length} keys are not read yet.`,
    );
    shown.rows.forEach((row, order) => {
      row.dataset.step = order > at ? "later" : order === at ? "now" : "before";
      if (order === at) row.setAttribute("aria-current", "step");
      else row.removeAttribute("aria-current");
    });
    const told = shown.heads.map((head, place) => [head, cells[place]]).filter(([head, cell]) => cell && head !== WEIGHTS);
    said.textContent = `Step ${at + 1} of ${shown.steps.length}: ${told.map((pair) => pair.join(" ")).join(", ")}.`;
    range.setAttribute("aria-valuetext", `${at + 1} of ${shown.steps.length}`);
    // Disabled, a button would lose the focus of those who press it again and again.
    back.setAttribute("aria-disabled", at === 0);
    next.setAttribute("aria-disabled", at === shown.steps.length - 1);
  }

  const walk = (by) => () => {
    range.value = Number(range.value) + by;
    update();
  };
  back.addEventListener("click", walk(-1));
  next.addEventListener("click", walk(1));
  range.addEventListener("input", update);
  choices.addEventListener("input", (event) => {
    begin(Number(event.target.value));
    update();
  });
  begin(0);
  update();
}
