// What the tests ask of a page. It is there before the page's own scripts run, beside axe.
// What finds faults returns one line for each.
"use strict";

window.examine = (() => {
  const moves = [];
  new PerformanceObserver((list) => {
    moves.push(...list.getEntries().filter((move) => !move.hadRecentInput));
  }).observe({ type: "layout-shift", buffered: true });

  /** What has moved by itself, in all by more than a share of the window. */
  const shifts = (most) => {
    const total = moves.reduce((sum, move) => sum + move.value, 0);
    const name = ({ node }) => (node instanceof Element ? shown(node) : String(node?.nodeName));
    return total <= most ? [] : moves.map((move) => `shifts by ${move.value.toFixed(4)}: ${move.sources.map(name).join(", ")}`);
  };

  const shown = (element) => element.cloneNode(false).outerHTML.slice(0, 120);
  const frame = () => new Promise(requestAnimationFrame);

  /** Waits until nothing moves any more: fonts are there, transitions at their end. */
  const settled = async () => {
    await document.fonts.ready;
    await frame();
    const ending = document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime !== Infinity);
    await Promise.allSettled(ending.map((one) => one.finished));
    await frame();
  };

  /** Comes near each thing to touch, which then starts, and returns to the top. */
  const touch = async () => {
    const faults = [];
    for (const place of document.querySelectorAll("article *")) {
      if (!customElements.get(place.localName)) continue;
      place.scrollIntoView();
      for (let patience = 3600; patience && !place.querySelector("form"); patience--) await frame();
      if (!place.querySelector("form")) faults.push(`does not start: ${shown(place)}`);
    }
    scrollTo(0, 0);
    await settled();
    return faults;
  };

  /** Shows what is folded away: whoever unfolds it must be able to read it. */
  const unfold = () => document.querySelectorAll("details").forEach((each) => (each.open = true));

  const axeFinds = async (context, rules) => {
    const found = await axe.run(context, { ...rules, resultTypes: ["violations"], preload: false });
    return found.violations.flatMap((rule) =>
      rule.nodes.map((node) => {
        const why = node.any[0] || node.all[0] || node.none[0];
        return `${rule.id}: ${node.target.join(" ")} ${node.html.slice(0, 160)} ${why ? why.message : ""}`;
      }),
    );
  };

  /** Everything that axe knows but what depends on colours. */
  const rules = (tags) =>
    axeFinds(document, {
      runOnly: { type: "tag", values: tags },
      rules: { "color-contrast": { enabled: false }, "link-in-text-block": { enabled: false } },
    });

  /**
   * Links told apart from their text, and the contrast of one text of each look: of its own colour, size
   * and weight over its own grounds. Given all texts, axe takes half a minute for the thousands of
   * coloured words of a page of code.
   */
  const colours = async () => {
    const only = (rule) => ({ runOnly: { type: "rule", values: [rule] } });
    const contrast = await axeFinds({ include: looks() }, only("color-contrast"));
    return contrast.concat(await axeFinds(document, only("link-in-text-block")));
  };

  const looks = () => {
    const known = new Map();
    const walk = (element, under) => {
      const style = getComputedStyle(element);
      if (style.display === "none") return;
      const own = [style.backgroundColor, style.backgroundImage, style.opacity, style.filter, style.mixBlendMode];
      // What is placed may come to lie over something else.
      const placed = style.position === "static" ? "" : `${element.tagName} ${element.className}`;
      const plain = own.join() === "rgba(0, 0, 0, 0),none,1,none,normal" && !placed;
      const ground = plain ? under : `${under} > ${own} ${placed}`;
      const text = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
      if (text && element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) {
        const look = [ground, style.color, style.fontSize, style.fontWeight, style.textShadow].join(" | ");
        if (!known.has(look)) known.set(look, element);
      }
      for (const child of element.children) walk(child, ground);
    };
    walk(document.documentElement, "");
    return [...known.values()];
  };

  /** What makes the page scroll sideways. */
  const sideways = () => {
    const width = document.documentElement.clientWidth;
    const over = document.documentElement.scrollWidth - width;
    if (over <= 0) return [];
    const held = (element) => {
      for (let box = element.parentElement; box && box !== document.body; box = box.parentElement)
        if (getComputedStyle(box).overflowX !== "visible") return true;
      return false;
    };
    const wide = [...document.body.querySelectorAll("*")].filter(
      (element) => element.getBoundingClientRect().right > width + 0.5 && !held(element),
    );
    return [`scrolls sideways by ${over} px: ${wide.slice(0, 3).map(shown).join(", ")}`];
  };

  /** Where the page's links lead, as they stand once its scripts have run. */
  const links = () => [...document.links].map((link) => link.href);

  /** The element that has the keyboard, if it is one that a reader sees to have it. */
  const focused = () => {
    const element = document.activeElement;
    if (!element || element === document.body) return null;
    // A radio button or a box may be out of sight, and its label shows that it has the keyboard.
    const labels = [...(element.labels || [])];
    const bearers = [element, element.nextElementSibling, ...labels].filter(Boolean);
    const marked = bearers.filter((bearer) => {
      const style = getComputedStyle(bearer);
      const box = bearer.getBoundingClientRect();
      const drawn = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
      return drawn && box.width > 1 && box.height > 1 && bearer.checkVisibility({ opacityProperty: true });
    });
    const uncovered = marked.some((bearer) =>
      [...bearer.getClientRects()].some(({ left, right, top, bottom }) =>
        [[left + 2, top + 2], [right - 2, bottom - 2], [(left + right) / 2, (top + bottom) / 2]].some(([x, y]) => {
          const above = document.elementFromPoint(x, y);
          return above && (bearer.contains(above) || above.contains(bearer));
        }),
      ),
    );
    const fault = !marked.length ? "has the keyboard and does not show it" : uncovered ? "" : "has the keyboard out of sight";
    element.dataset.reached = "";
    return { shown: shown(element), fault };
  };

  /** What a reader without a pointer did not come to, walking through the page once. */
  const unreached = () => {
    const all = "a[href], button, input, select, textarea, summary, [tabindex='0']";
    const group = (radio) => [...document.querySelectorAll(`input[type=radio][name="${CSS.escape(radio.name)}"]`)];
    return [...document.querySelectorAll(all)]
      .filter((element) => element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }))
      .filter((element) => !element.disabled && element.tabIndex >= 0 && !element.matches(".md-toggle"))
      .filter((element) => !(element.type === "radio" ? group(element) : [element]).some((each) => "reached" in each.dataset))
      .map(shown);
  };

  return { focused, unreached, settled, touch, unfold, rules, colours, sideways, links, shifts };
})();
