// Elements, and labelled fields with their error beside them.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const make = (name, attributes, ...children) =>
  filled(document.createElement(name), attributes, children);

export const draw = (name, attributes, ...children) =>
  filled(document.createElementNS(SVG, name), attributes, children);

let made = 0;

/** A name that no other element of the page has. */
export const unique = () => `ac-live-${++made}`;

/** A label above a control, and a line for what is wrong with it. */
export function field(label, control, ...beside) {
  const id = unique();
  const error = make("p", { class: "ac-live__error", id: `${id}-error` });
  control.id = id;
  control.setAttribute("aria-describedby", error.id);
  const element = make("div", { class: "ac-live__field" }, make("label", { for: id }, label), control, ...beside, error);
  return {
    element,
    control,
    refuse(message) {
      error.textContent = message ?? "";
      if (message) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    },
  };
}

export const choice = (values, chosen) =>
  make(
    "select",
    null,
    ...values.map(([value, text]) => make("option", { value, selected: value === chosen }, text ?? value)),
  );
