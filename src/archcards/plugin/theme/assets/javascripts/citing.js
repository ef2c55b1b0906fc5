// Cites a piece of evidence and reports errors in it. Buttons for that appear in an unfolded check, and
// everywhere while the page shows where its numbers come from; otherwise they are not there.
const PIECES = ".ac-check, .ac-registered, .ac-derivation, .ac-switch, .ac-figure, .ac-stack, .ac-table[id]";
const BOX = ".ac-sources input";
// Whoever has turned it on reads the next page in the same way, until the tab is closed.
const KEPT = "ac-sources";

const says = (item) =>
  item.dataset.says ??
  item.querySelector("caption")?.textContent ??
  item.querySelector("p, thead").textContent.replace(/, (computed|chosen) at line.*/s, "").trim();

const tex = (text) =>
  text
    .split(/(\$[^$]+\$)/)
    .map((piece, at) => (at % 2 ? piece : piece.replace(/[&%#_{}]/g, "\\$&")))
    .join("");

const element = (name, given, ...children) => {
  const made = Object.assign(document.createElement(name), given);
  made.append(...children);
  return made;
};

// What the build wrote for the page, filled for one piece of evidence on it.
const about = (item) => {
  const { page: title, address: known, citation, bibtex, report, form } = document.querySelector(".ac-citing").dataset;
  // A site that was built for nowhere in particular is cited where it is read.
  const here = new URL(known || location.href);
  const base = here.hostname === "localhost" ? new URL(location.pathname, location.origin) : here;
  const address = new URL(`#${item.id}`, base).href;
  const claim = says(item);
  const fill = (text, values) => text.replace(/\{(title|address|key|body)\}/g, (_, name) => values[name]);
  const named = `“${claim}”, in “${title}”`;
  const texts = {
    address,
    citation: fill(citation, { title: named, address }),
    bibtex: fill(bibtex, { title: `${tex(claim)}, in “${tex(title)}”`, address, key: item.id }),
    report: fill(report, { title: named, address }),
  };
  const link = form && fill(form, {
    title: encodeURIComponent(`Error: ${claim}`.slice(0, 120)),
    body: encodeURIComponent(texts.report),
  });
  return { claim, texts, link };
};

const open = (item) => {
  const { claim, texts, link } = about(item);
  const told = element("span", { role: "status" });
  const copy = (name, what) =>
    element("button", {
      type: "button",
      textContent: name,
      onclick: async () => {
        told.textContent = ""; // What is said twice is heard twice.
        try {
          await navigator.clipboard.writeText(texts[what]);
          told.textContent = "Copied.";
        } catch {
          told.textContent = "This browser does not let the page copy; the texts can be selected.";
        }
      },
    });
  const shown = (what) => element("pre", { tabIndex: 0 }, element("code", { textContent: texts[what] }));
  const report = link
    ? [element("a", { href: link, textContent: "Report an error in it" })]
    : [copy("Copy a report of an error", "report"), " for whoever keeps this site"];
  const dialog = element(
    "dialog",
    { className: "ac-citing-dialog md-typeset" },
    element("h2", { id: "ac-citing-title", textContent: claim.replaceAll("$", "") }),
    element("p", { textContent: texts.citation }),
    element("p", {}, copy("Copy citation", "citation"), copy("Copy BibTeX", "bibtex"), copy("Copy address", "address"), told),
    element("details", { className: "ac-code" }, element("summary", { textContent: "BibTeX" }), shown("bibtex")),
    element("p", {}, ...report),
    element("form", { method: "dialog" }, element("button", { textContent: "Close" })),
  );
  dialog.setAttribute("aria-labelledby", "ac-citing-title");
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("keydown", (event) => event.stopPropagation()); // keys of the page
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
};

const button = (item) => {
  const made = element("button", { type: "button", className: "ac-cite", textContent: "cite or correct" });
  made.setAttribute("aria-label", `Cite or correct: ${says(item)}`);
  made.addEventListener("click", () => open(item));
  return made;
};

const offer = (item) => {
  const line = element("p", { className: "ac-offer" }, element("a", { href: `#${item.id}`, textContent: "address" }), " · ", button(item));
  line.firstChild.setAttribute("aria-label", `Permanent address: ${says(item)}`);
  if (item.matches(".ac-registered")) item.firstElementChild.append(" · ", button(item));
  else if (item.matches(".ac-check, .ac-figure, .ac-stack, .ac-derivation, .ac-switch")) item.append(line);
  else item.after(line);
};

// `toggle` does not bubble.
document.addEventListener(
  "toggle",
  ({ target }) => {
    const line = target.matches?.(".ac-check details.ac-code[open]") && target.querySelector(".ac-address");
    if (line && !line.querySelector("button")) line.append(" · ", button(target.closest(".ac-check")));
  },
  true,
);

const offered = new WeakSet();
const show = (box) => {
  if (!box.checked || offered.has(box)) return;
  offered.add(box);
  document.querySelectorAll(PIECES).forEach(offer);
};
const turned = (box) => {
  show(box);
  __md_set(KEPT, box.checked, sessionStorage);
};
document.addEventListener("change", ({ target }) => target.matches(BOX) && turned(target));
// A single key, as those of the theme: s for the search, n and p for the next and the previous page.
document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  const box = document.querySelector(BOX);
  const typing = target.closest("textarea, select, dialog, [contenteditable], input:not([type=checkbox], [type=radio])");
  if (!box || key !== "e" || event.ctrlKey || event.metaKey || event.altKey || typing) return;
  event.preventDefault();
  box.checked = !box.checked;
  turned(box);
});

document$.subscribe(() => {
  document.querySelector(".ac-citing-dialog")?.close();
  const box = document.querySelector(BOX);
  if (!box) return;
  box.checked = __md_get(KEPT, sessionStorage) ?? false;
  show(box);
});
