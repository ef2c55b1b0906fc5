// A link to another page of the site puts that page's content in the place of this one's; the theme sees to
// it, and gives each in `document$`. What a script sets up for a content it sets up there, or in an element
// of its own; what it hears on the document it hears for all contents, and looks for its place each time.

// Links within a page are the browser's. The theme would fetch the page anew where the reader has not left
// it yet, and with it go what was chosen, unfolded or typed. It leaves alone what has a target, and hears
// of a way back only what it is told here.
document.addEventListener(
  "click",
  (event) => {
    const link = event.target.closest?.("a[href]");
    if (!(link instanceof HTMLAnchorElement) || link.target === "_blank") return;
    const within = link.pathname === location.pathname && (link.hash || link.search !== location.search);
    link.target = within || event.shiftKey || event.altKey ? "_self" : "";
  },
  true,
);
{
  const loaded = location.pathname;
  let exchanged = false;
  location$.subscribe(() => (exchanged = true));
  addEventListener("popstate", () => {
    if (exchanged || location.pathname !== loaded) dispatchEvent(new Event("archcards:return"));
  });
}

// The link that was followed has gone with its content. The keyboard goes on where the reader has come to,
// and those who hear the page are told.
{
  let contents = 0;
  document$.subscribe(() => {
    if (++contents === 1) return;
    const place = document.querySelector(".md-content :target") ?? document.querySelector(".md-content h1");
    if (!place.matches("a[href], button, input, select, textarea, summary, [tabindex]")) {
      place.tabIndex = -1;
      place.addEventListener("blur", () => place.removeAttribute("tabindex"), { once: true });
    }
    place.focus({ preventScroll: true });
  });
}
