// The theme's script puts a navigation landmark on each listing, without a name. This names them.
new MutationObserver(() => {
  document.querySelectorAll("nav.md-code__nav:not([aria-label])").forEach((nav) => {
    const listings = [...document.querySelectorAll(".highlight")];
    const place = listings.indexOf(nav.closest(".highlight")) + 1;
    nav.setAttribute("aria-label", `Listing ${place}`);
  });
}).observe(document.body, { childList: true, subtree: true });

// Tables, drawings and formulas scroll where the page is narrower than they are, and there the keyboard
// comes to them. Where they fit, it passes by. Listings do too: the theme lets the keyboard come to them only
// where there is a mouse.
{
  const FRAMES = ".ac-table, .ac-drawing, .ac-math, .ac-cells, .ac-long, .md-content pre > code";
  const sizes = new ResizeObserver((frames) => {
    for (const { target } of frames) {
      const wider = target.scrollWidth > target.clientWidth;
      if (wider) target.setAttribute("tabindex", "0");
      else target.removeAttribute("tabindex");
    }
  });
  document$.subscribe(() => {
    sizes.disconnect();
    document.querySelectorAll(FRAMES).forEach((frame) => sizes.observe(frame));
  });
}

// Of the two buttons for colours, the one in force is the chosen one: the keyboard comes to where it shows.
{
  const choose = () => {
    const scheme = document.body.getAttribute("data-md-color-scheme");
    const button = document.querySelector(`.md-option[data-md-color-scheme="${scheme}"]`);
    if (button) button.checked = true;
  };
  choose();
  new MutationObserver(choose).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
}

// The search answers as one types. An Enter that comes before the theme has heard that the field is in use
// would send the field as a form and load the page anew.
document.forms.search?.addEventListener("submit", (event) => event.preventDefault());
