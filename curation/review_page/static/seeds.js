// Seeds that wait for a label: a primary leaf, or tags of one's own.
import { $, button, count, el, get, later, saying } from "./dom.js";
import { List } from "./list.js";

const REASONS = ["missing_tool", "missing_info", "no_actionable", "no_tool_needed"];
const parts = (text) => text.split(/[;；|]/u).map((part) => part.trim()).filter(Boolean);

export function seedsView(page) {
  const filter = { words: "", status: "" };
  let list;
  let shown = 0;
  let seeds = new Map();

  /** A leaf by its id, or by a last part that only it has. */
  function leaf(text) {
    const leaves = page.nodes.filter((node) => node.is_leaf);
    const same = leaves.filter((node) => node.name === text);
    return leaves.some((node) => node.node_id === text) || same.length !== 1 ? text : same[0].node_id;
  }

  async function load(key = list?.key) {
    const mine = (shown += 1);
    const found = await get("seeds", { ...filter, by: page.by() });
    if (mine !== shown || !list) return;
    seeds = new Map(found.map((seed) => [seed.query_id, seed]));
    list.rows = new Map(seeds);
    list.show([...seeds.keys()], key);
    $("footer").textContent = page.state.seeds.all ? `${count(seeds.size)} listed. Labels go to ${page.state.seeds_file ?? "no file: see the recipe"}.` : "No seeds are proposed. Set seeds.propose in the recipe.";
  }

  const line = (seed) => [
    el("div", {}, el("div", { class: "main" }, seed.text), el("div", { class: "sub" },
      seed.label ? el("span", { class: "labelled" }, seed.label.primary ?? seed.label.tags.join("; ")) : el("span", { class: "waiting" }, "waiting"),
      seed.others ? ` · labelled by ${count(seed.others)} more` : "", ` · ${seed.lang}`)),
    el("span", { class: "n", title: "raw rows" }, seed.weight === null ? "" : count(seed.weight)),
  ];

  function chosen(key) {
    const seed = seeds.get(key);
    if (!seed) {
      $("detail").replaceChildren(el("p", { class: "soft" }, "Nothing is listed."));
      return;
    }
    const label = seed.label ?? { primary: "", tags: [], secondary: [], reason: "" };
    const primary = el("input", { id: "primary", value: label.primary ?? "", list: "leaves", autocomplete: "off", spellcheck: "false" });
    const tags = el("input", { value: label.tags.join("; "), autocomplete: "off" });
    const secondary = el("input", { value: label.secondary.join("; "), list: "leaves", autocomplete: "off", spellcheck: "false" });
    const reason = el("select", {}, ["", ...REASONS].map((name) => el("option", { value: name, selected: (label.reason ?? "") === name }, name || "it can be solved")));
    const save = (event) => page.submit(event, async () => {
      await page.step("label", { query_id: key, primary: leaf(primary.value.trim()) || null, tags: parts(tags.value), secondary: parts(secondary.value).map(leaf), reason: reason.value || null });
      next();
    });
    $("detail").replaceChildren(el("h2", {}, seed.text), el("p", { class: "soft" }, seed.lang, seed.weight === null ? "" : ` · ${count(seed.weight)} raw rows`),
      el("form", { class: "form", onsubmit: save, onkeydown: (event) => {
        if (event.key === "Escape") { chosen(key); $("list").focus(); }
      } },
        el("label", {}, "Primary leaf", primary), el("label", {}, "Tags, parted by ;", tags),
        el("label", {}, "Secondary leaves, parted by ;", secondary), el("label", {}, "Why it cannot be solved", reason), page.nodeOptions("leaves"),
        el("div", { class: "buttons" }, el("button", { class: "primary" }, "Save, next ", el("kbd", { "aria-hidden": "true" }, "Enter")),
          seed.label ? button("Take the label away", "c", saying(clear)) : "")));
  }

  const next = () => {
    const after = list.keys.findIndex((key, at) => at > list.index && !seeds.get(key).label);
    list.select(after < 0 ? list.index + 1 : after);
  };
  const clear = () => list.key && page.step("label", { query_id: list.key });
  const write = () => $("primary")?.focus();

  return {
    name: "seeds",
    enter() {
      $("filters").replaceChildren(
        el("input", { type: "search", id: "search", placeholder: "Search /", "aria-label": "Search seeds", "aria-keyshortcuts": "/", value: filter.words,
          oninput: later(saying((event) => { filter.words = event.target.value; return load(); }), 150) }),
        el("select", { "aria-label": "Status", onchange: saying((event) => { filter.status = event.target.value; return load(); }) },
          [["", "all"], ["waiting", "waiting"], ["labelled", "labelled"]].map(([value, text]) => el("option", { value, selected: filter.status === value }, text))));
      list = new List($("list"), { label: "Seeds", chosen, draw: line, kind: "plain", fetchRows: async (keys) => keys.map((key) => [key, seeds.get(key)]) });
      return load(null);
    },
    leave() { list.close(); list = null; },
    list: () => list,
    /** Show again what a step touched, without taking decided lines out of the list. */
    async touched(answer) {
      if (!answer.seeds.length) return;
      const found = await get("seeds", { by: page.by() });
      for (const seed of found) if (seeds.has(seed.query_id)) seeds.set(seed.query_id, seed);
      if (!list) return;
      list.rows = new Map(seeds);
      list.paint();
      if (answer.seeds.includes(list.key)) chosen(list.key);
    },
    goTo(answer) {
      const at = list.keys.indexOf(answer.seeds[0]);
      if (at >= 0) list.select(at);
    },
    reload: () => load(),
    keys: { e: write, Enter: write, c: clear },
  };
}
