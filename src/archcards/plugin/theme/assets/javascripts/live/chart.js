// Lines over the context, both axes logarithmic.
import { draw } from "./make.js";

const HEIGHT = 300;
const EDGE = { top: 14, right: 14, bottom: 40, left: 66 };

const short = (length) => {
  for (const [unit, name] of [[2 ** 30, "G"], [2 ** 20, "M"], [2 ** 10, "k"]]) {
    if (length >= unit && length % (unit / 8) === 0) return `${length / unit}${name}`;
  }
  return `${length}`;
};

/**
 * `lines`: name, class and points [context, value] of each; `unit`: the base of the vertical axis'
 * steps and their names; `at`: the context to mark.
 */
export function chart({ lines, unit, at, label, width }) {
  const points = lines.flatMap((line) => line.points).filter(([, y]) => y > 0);
  if (!points.length) return draw("svg", { role: "img", "aria-label": label, width, height: 0 });
  const xs = points.map(([x]) => Math.log2(x));
  const ys = points.map(([, y]) => Math.log(y) / Math.log(unit.base));
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  let [low, high] = [Math.min(...ys), Math.max(...ys)];
  const room = Math.max((high - low) * 0.06, 0.1);
  [low, high] = [low - room, high + room];
  const inner = { width: width - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
  const across = (x) => EDGE.left + ((Math.log2(x) - left) / (right - left || 1)) * inner.width;
  const upY = (y) => EDGE.top + (1 - (y - low) / (high - low)) * inner.height;
  const up = (y) => upY(Math.log(y) / Math.log(unit.base));

  const grid = [];
  const steps = unit.steps.filter((step) => step.at >= low && step.at <= high);
  const every = Math.ceil(steps.length / 7);
  steps.forEach((step, place) => {
    if (place % every) return;
    const y = upY(step.at);
    grid.push(
      draw("line", { class: "ac-chart__grid", x1: EDGE.left, x2: width - EDGE.right, y1: y, y2: y }),
      draw("text", { class: "ac-chart__number", x: EDGE.left - 8, y: y + 4, "text-anchor": "end" }, step.name),
    );
  });
  const stride = Math.max(1, Math.ceil((right - left) / (inner.width / 46)));
  for (let power = Math.ceil(left); power <= right; power += stride) {
    const x = across(2 ** power);
    grid.push(
      draw("line", { class: "ac-chart__tick", x1: x, x2: x, y1: HEIGHT - EDGE.bottom, y2: HEIGHT - EDGE.bottom + 5 }),
      draw("text", { class: "ac-chart__number", x, y: HEIGHT - EDGE.bottom + 18, "text-anchor": "middle" }, short(2 ** power)),
    );
  }
  const marked = at >= 2 ** left && at <= 2 ** right;
  return draw(
    "svg",
    { role: "img", "aria-label": label, width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` },
    ...grid,
    draw("line", { class: "ac-chart__axis", x1: EDGE.left, x2: width - EDGE.right, y1: HEIGHT - EDGE.bottom, y2: HEIGHT - EDGE.bottom }),
    draw("text", { class: "ac-chart__number", x: width - EDGE.right, y: HEIGHT - 4, "text-anchor": "end" }, "tokens of context"),
    marked ? draw("line", { class: "ac-chart__at", x1: across(at), x2: across(at), y1: EDGE.top, y2: HEIGHT - EDGE.bottom }) : null,
    ...lines.map((line) =>
      draw("path", {
        class: `ac-chart__line ${line.class}`,
        d: line.points
          .filter(([, y]) => y > 0)
          .map(([x, y], place) => `${place ? "L" : "M"}${across(x).toFixed(1)} ${up(y).toFixed(1)}`)
          .join(""),
      }),
    ),
  );
}

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** Bytes in steps of two, FLOPs in steps of ten. */
export const UNITS = {
  bytes: {
    base: 2,
    steps: Array.from({ length: 70 }, (_, power) => ({
      at: power,
      name: `${2 ** (power % 10)} ${BYTES[Math.floor(power / 10)]}`,
    })),
  },
  flops: {
    base: 10,
    steps: Array.from({ length: 60 }, (_, power) => ({ at: power, name: power < 3 ? `${10 ** power}` : `10${superscript(power)}` })),
  },
};

function superscript(number) {
  return [...`${number}`].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
}
