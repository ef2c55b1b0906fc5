// The theme's script puts a navigation landmark on each listing, without a name. This names them.
new MutationObserver(() => {
  document.querySelectorAll("nav.md-code__nav:not([aria-label])").forEach((nav) => {
    const listings = [...document.querySelectorAll(".highlight")];
    const place = listings.indexOf(nav.closest(".highlight")) + 1;
    nav.setAttribute("aria-label", `Listing ${place}`);
  });
}).observe(document.body, { childList: true, subtree: true });
