// Sorting and filtering of the list of models. Without this script the list is a plain table.
"use strict";

{
  const region = document.querySelector(".ac-models");
  const table = region && region.querySelector("table");
  if (table) {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    const number = (row, column) => Number(row.cells[column].dataset.value);
    const text = (row, column) => row.cells[column].textContent.toLowerCase();

    // Filter

    const form = document.querySelector(".ac-filter");
    const input = form.querySelector("input");
    const count = form.querySelector("output");
    form.addEventListener("submit", (event) => event.preventDefault());

    const filter = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const known = row.dataset.words + " " + row.textContent.toLowerCase();
        row.hidden = !words.every((word) => known.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = shown === rows.length ? rows.length + " models" : shown + " of " + rows.length;
    };
    input.addEventListener("input", filter);
    filter();

    // Sort: a button in each heading, numbers from the largest on

    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      const numeric = head.classList.contains("ac-number");
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const ascending = before ? before === "descending" : !numeric;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        const value = numeric ? number : text;
        const compare = (a, b) => {
          const [x, y] = [value(a, column), value(b, column)];
          return x < y ? -1 : x > y ? 1 : 0;
        };
        rows.sort((a, b) => (ascending ? compare(a, b) : compare(b, a)));
        body.append(...rows);
      });
    });
  }
}
