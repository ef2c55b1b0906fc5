// Things to touch are elements of their own: each starts when it comes near the reader's view, and
// stops when it leaves the page. Until then, and without this script, its static text stands there.
const MODULES = {
  "ac-live": "./live/live.js",
  "ac-masks": "./live/masks.js",
  "ac-growth": "./live/growth.js",
  "ac-steps": "./live/steps.js",
};

for (const [name, file] of Object.entries(MODULES)) {
  class Widget extends HTMLElement {
    connectedCallback() {
      const leaving = (this.leaving = new AbortController());
      const nearby = new IntersectionObserver(
        async (seen) => {
          if (!seen.some((one) => one.isIntersecting)) return;
          nearby.disconnect();
          const { mount } = await import(file);
          if (!leaving.signal.aborted) mount(this, leaving.signal);
        },
        { rootMargin: "50%" },
      );
      nearby.observe(this);
      leaving.signal.addEventListener("abort", () => nearby.disconnect());
    }

    disconnectedCallback() {
      this.leaving.abort();
    }
  }
  customElements.define(name, Widget);
}
