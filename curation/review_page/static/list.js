// A list of any length: only the lines in sight exist, and only their rows are fetched.
import { el } from "./dom.js";

const HEIGHT = 56;
const MARGIN = 12;
const CONTEXT = 2;
const BATCH = 60;

export class List {
  /**
   * fetchRows(keys) gives rows by key; draw(row) gives a line's children; chosen(key) is told what was selected.
   */
  constructor(box, { label, fetchRows, draw, chosen, kind = "" }) {
    Object.assign(this, { box, fetchRows, draw, chosen, kind });
    this.keys = [];
    this.rows = new Map();
    this.asked = new Set();
    this.stale = new Set();
    this.index = -1;
    this.spacer = el("div", { class: "spacer", role: "presentation" });
    box.setAttribute("role", "listbox");
    box.setAttribute("aria-label", label);
    box.replaceChildren(this.spacer);
    this.onscroll = () => this.paint();
    box.addEventListener("scroll", this.onscroll, { passive: true });
    this.resized = new ResizeObserver(() => this.paint());
    this.resized.observe(box);
  }

  /** Leave the box to another view. */
  close() {
    this.box.removeEventListener("scroll", this.onscroll);
    this.resized.disconnect();
    for (const name of ["role", "aria-label", "aria-activedescendant"]) this.box.removeAttribute(name);
    this.box.replaceChildren();
  }

  /** Show these keys; stay at `key` if it is among them, else begin at the first. */
  show(keys, key = null) {
    this.keys = keys;
    this.spacer.style.height = `${keys.length * HEIGHT}px`;
    this.select(Math.max(keys.indexOf(key), 0), true);
  }

  get key() {
    return this.keys[this.index] ?? null;
  }

  /** Rows that may have changed are fetched again when they are in sight; until then they stay as they were. */
  forget(keys) {
    for (const key of keys) this.stale.add(key);
    this.paint();
  }

  select(index, always = false) {
    const next = Math.max(0, Math.min(index, this.keys.length - 1));
    if (next === this.index && !always) return;
    this.index = this.keys.length ? next : -1;
    // Some lines before and after the selected one stay in sight.
    const top = (this.index - CONTEXT) * HEIGHT;
    const bottom = (this.index + 1 + CONTEXT) * HEIGHT;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (bottom > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = bottom - this.box.clientHeight;
    this.paint();
    this.chosen(this.key);
  }

  move(by) {
    this.select(this.index + by);
  }

  /** The page up and down keys go by what is in sight. */
  get span() {
    return Math.max(1, Math.floor(this.box.clientHeight / HEIGHT) - 1);
  }

  paint() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / HEIGHT) - MARGIN);
    const last = Math.min(this.keys.length, Math.ceil((this.box.scrollTop + this.box.clientHeight) / HEIGHT) + MARGIN);
    const lines = [];
    for (let i = first; i < last; i += 1) lines.push(this.line(i));
    this.spacer.replaceChildren(...lines);
    if (this.index >= first && this.index < last) this.box.setAttribute("aria-activedescendant", `line-${this.index}`);
    else this.box.removeAttribute("aria-activedescendant");
    this.fill(first, last);
  }

  line(i) {
    const row = this.rows.get(this.keys[i]);
    const line = el("div", {
      class: `row ${this.kind}`, role: "option", id: `line-${i}`, "aria-selected": String(i === this.index),
      "aria-setsize": this.keys.length, "aria-posinset": i + 1, onclick: () => this.select(i),
    }, row ? this.draw(row) : "…");
    line.style.top = `${i * HEIGHT}px`;
    return line;
  }

  async fill(first, last) {
    const missing = this.keys.slice(first, last).filter((key) => (!this.rows.has(key) || this.stale.has(key)) && !this.asked.has(key)).slice(0, BATCH);
    if (!missing.length) return;
    for (const key of missing) {
      this.asked.add(key);
      this.stale.delete(key);
    }
    try {
      for (const [key, row] of await this.fetchRows(missing)) this.rows.set(key, row);
      this.paint();
    } finally {
      for (const key of missing) this.asked.delete(key);
    }
  }
}
