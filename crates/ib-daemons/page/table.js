// Tables that can be sorted by any column.

import { h, unhurried } from "./dom.js";
import { byName } from "./format.js";

/**
 * A table of objects. A column is `{ title, value, show, numeric, cut }`: the table is sorted by `value`, and shows `show` or
 * else `value`. A column with `cut` takes the remaining width. `choose` gets a row of the clicked key, possibly an older one.
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
    this.fill = unhurried(this.body, () => this.paintRows());
    this.rest = h("p", { class: "faint", hidden: true });
    this.element = h("div", { class: "table" },
      h("table", { "aria-label": label }, h("thead", {}, h("tr", {}, this.heads)), this.body), this.rest);
  }

  /** Shows rows; the row with the key `chosen` is marked. */
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
    const { sorted } = this;
    this.heads.forEach((head, index) => {
      const direction = index !== sorted ? "none" : this.ascending ? "ascending" : "descending";
      head.setAttribute("aria-sort", direction);
      head.querySelector("span").textContent = { none: "", ascending: " ▲", descending: " ▼" }[direction];
    });
    this.fill();
  }

  // Existing rows are updated in place, to keep the focus and to not lose clicks.
  paintRows() {
    const { columns, sorted } = this, rows = [...this.rows];
    if (sorted !== null) {
      const { value } = columns[sorted], sign = this.ascending ? 1 : -1;
      rows.sort((one, other) => sign * compare(value(one), value(other)));
    }
    const focused = this.body.contains(document.activeElement) ? document.activeElement : null;
    const there = new Map(); // existing rows by key; keys need not be unique
    for (const row of this.key ? this.body.rows : []) there.set(row.dataset.key, [...there.get(row.dataset.key) ?? [], row]);
    const wanted = rows.slice(0, this.most).map((row) => update(there.get(this.key?.(row))?.shift(), this.row(row)));
    const kept = new Set(wanted);
    for (const row of [...this.body.rows]) if (!kept.has(row)) row.remove();
    wanted.forEach((row, index) => { if (this.body.rows[index] !== row) this.body.insertBefore(row, this.body.rows[index] ?? null); });
    // A moved row has lost the focus.
    if (focused?.isConnected && focused !== document.activeElement) focused.focus();
    this.rest.hidden = rows.length <= this.most;
    this.rest.textContent = `and ${rows.length - this.most} more`;
  }

  row(row) {
    const key = this.key?.(row), chosen = key !== undefined && key === this.chosen;
    const act = this.choose && (() => this.choose(row));
    const cells = this.columns.map(({ value, show, numeric, cut }, index) => {
      const content = (show ?? ((own) => String(value(own) ?? "–")))(row);
      // The first cell of a selectable row is a button, for the keyboard.
      const inner = act && index === 0 ? h("button", { type: "button", class: "jump", "aria-pressed": String(chosen) }, content) : content;
      return h("td", { class: cut ? "shrinks" : numeric ? "number" : undefined }, inner);
    });
    return h("tr", { "data-key": key, class: [act && "can", chosen && "chosen"].filter(Boolean).join(" ") || undefined, click: act ?? undefined }, cells);
  }
}

// Updates a row to the content of a new one and keeps its button; returns the new one if there is no row.
function update(row, fresh) {
  if (!row) return fresh;
  row.className = fresh.className;
  [...fresh.cells].forEach((cell, index) => {
    const own = row.cells[index];
    if (own.isEqualNode(cell)) return;
    const [button, other] = [own, cell].map((one) => one.querySelector("button"));
    if (!button || !other) return own.replaceChildren(...cell.childNodes);
    button.setAttribute("aria-pressed", other.getAttribute("aria-pressed"));
    return button.replaceChildren(...other.childNodes);
  });
  return row;
}

function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return byName(String(one ?? ""), String(other ?? ""));
}
