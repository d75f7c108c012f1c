// Tables that can be sorted by any of their columns.

import { h } from "./dom.js";
import { byName } from "./format.js";

/**
 * A table of rows that are objects. A column is `{ title, value, show, numeric }`: `value` is what it is sorted by, and
 * shown unless `show` makes something else of a row.
 */
export class Table {
  constructor({ label, columns, key, choose, most = 200 }) {
    Object.assign(this, { columns, key, choose, most });
    this.rows = [];
    this.sorted = null;
    this.ascending = true;
    this.heads = columns.map((column, index) => h("th", { scope: "col", class: column.numeric ? "number" : undefined },
      h("button", { type: "button", class: "sort", click: () => this.sortBy(index) }, column.title, h("span", { "aria-hidden": "true" }))));
    this.body = h("tbody");
    this.rest = h("p", { class: "faint", hidden: true });
    this.element = h("div", { class: "table" },
      h("table", { "aria-label": label }, h("thead", {}, h("tr", {}, this.heads)), this.body), this.rest);
  }

  /** Shows rows; the one whose key is `chosen` is marked. */
  show(rows, chosen = null) {
    this.rows = rows;
    this.chosen = chosen;
    this.paint();
  }

  sortBy(index) {
    this.ascending = this.sorted === index ? !this.ascending : !this.columns[index].numeric;
    this.sorted = index;
    this.paint();
  }

  paint() {
    const { columns, sorted } = this;
    this.heads.forEach((head, index) => {
      const direction = index !== sorted ? "none" : this.ascending ? "ascending" : "descending";
      head.setAttribute("aria-sort", direction);
      head.querySelector("span").textContent = { none: "", ascending: " ▲", descending: " ▼" }[direction];
    });
    const rows = [...this.rows];
    if (sorted !== null) {
      const { value } = columns[sorted], sign = this.ascending ? 1 : -1;
      rows.sort((one, other) => sign * compare(value(one), value(other)));
    }
    const focused = this.body.contains(document.activeElement) ? document.activeElement.closest("tr").dataset.key : null;
    this.body.replaceChildren(...rows.slice(0, this.most).map((row) => this.row(row)));
    if (focused !== null) [...this.body.rows].find(({ dataset }) => dataset.key === focused)?.querySelector("button")?.focus();
    this.rest.hidden = rows.length <= this.most;
    this.rest.textContent = `and ${rows.length - this.most} more`;
  }

  row(row) {
    const key = this.key?.(row), chosen = key !== undefined && key === this.chosen;
    const act = this.choose && (() => this.choose(row));
    const cells = this.columns.map(({ value, show, numeric }, index) => {
      const content = (show ?? ((own) => String(value(own) ?? "–")))(row);
      // The first cell of a row that can be chosen is a button, for the keyboard.
      const inner = act && index === 0 ? h("button", { type: "button", class: "jump", "aria-pressed": String(chosen) }, content) : content;
      return h("td", { class: numeric ? "number" : undefined }, inner);
    });
    return h("tr", { "data-key": key, class: [act && "can", chosen && "chosen"].filter(Boolean).join(" ") || undefined, click: act ?? undefined }, cells);
  }
}

function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return byName(String(one ?? ""), String(other ?? ""));
}
