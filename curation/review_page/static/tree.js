// The tree of the version that is shown, and a node with its rows and neighbours.
import { $, button, count, el, get, saying } from "./dom.js";
import { showNode } from "./node.js";

export function treeView(page) {
  let chosen = null;
  const closed = new Set();
  let words = "";

  const children = () => Map.groupBy(page.nodes, (node) => node.parent_id);

  function visible() {
    if (!words) return null;
    const keep = new Set();
    for (const node of page.nodes)
      if (`${node.node_id} ${node.description}`.toLowerCase().includes(words))
        for (let at = node; at && !keep.has(at.node_id); at = page.byId.get(at.parent_id)) keep.add(at.node_id);
    return keep;
  }

  function item(node, below, keep) {
    const under = (below.get(node.node_id) ?? []).filter((child) => !keep || keep.has(child.node_id));
    const open = under.length && (keep || !closed.has(node.node_id));
    const line = el("div", { class: "line", onclick: () => { select(node.node_id); } },
      el("span", { class: "twist", "aria-hidden": "true", onclick: (event) => { event.stopPropagation(); toggle(node.node_id); } }, under.length ? (open ? "▾" : "▸") : ""),
      el("span", { class: node.is_other ? "name other" : "name" }, node.name),
      node.waiting ? el("span", { class: "badge", title: "proposals that wait", "aria-label": `${count(node.waiting)} proposals wait` }, count(node.waiting)) : "",
      el("span", { class: "n soft", title: "rows / raw rows" }, node.rows === undefined ? "" : `${count(node.rows)} / ${count(node.raw_rows)}`));
    line.style.setProperty("--depth", node.level - 1);
    return el("li", {
      role: "treeitem", "aria-level": node.level, "aria-selected": String(node.node_id === chosen), "data-node": node.node_id,
      "aria-expanded": under.length ? String(Boolean(open)) : null, tabindex: node.node_id === chosen ? "0" : "-1",
    }, line, open ? el("ul", { role: "group" }, under.map((child) => item(child, below, keep))) : "");
  }

  function draw(focus = false) {
    const below = children();
    const keep = visible();
    const top = (below.get(null) ?? []).filter((node) => !keep || keep.has(node.node_id));
    $("list").replaceChildren(el("ul", { role: "tree", "aria-label": "Taxonomy", onkeydown: keydown }, top.map((node) => item(node, below, keep))));
    const at = current();
    if (!at) $("list").querySelector('[role="treeitem"]')?.setAttribute("tabindex", "0");
    at?.querySelector(".line").scrollIntoView({ block: "nearest" });
    if (focus) at?.focus();
  }

  const items = () => [...$("list").querySelectorAll('[role="treeitem"]')];
  const current = () => items().find((node) => node.dataset.node === chosen);

  function toggle(id) {
    if (!closed.delete(id)) closed.add(id);
    draw(true);
  }

  function select(id) {
    for (let at = page.byId.get(page.byId.get(id)?.parent_id); at; at = page.byId.get(at.parent_id)) closed.delete(at.node_id);
    chosen = id;
    draw(true);
    saying(show)(id);
  }

  function move(by) {
    const all = items();
    const to = all[Math.max(0, Math.min(all.length - 1, all.indexOf(current()) + by))];
    if (to) select(to.dataset.node);
  }

  function keydown(event) {
    const id = event.target.dataset?.node;
    const node = page.byId.get(id);
    if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
    const open = event.target.getAttribute("aria-expanded");
    const moves = {
      ArrowDown: () => move(1), ArrowUp: () => move(-1), Home: () => move(-items().length), End: () => move(items().length),
      ArrowRight: () => (open === "false" ? toggle(id) : open === "true" && move(1)),
      ArrowLeft: () => (open === "true" ? toggle(id) : node.parent_id && select(node.parent_id)),
      Enter: () => select(id), " ": () => select(id),
    };
    if (event.key in moves) {
      event.preventDefault();
      event.stopPropagation();
      moves[event.key]();
    }
  }

  async function show(id) {
    const node = page.byId.get(id);
    const box = el("div", {}, el("p", { class: "soft" }, "…"));
    $("detail").replaceChildren(el("h2", {}, id),
      node.waiting ? el("div", { class: "buttons" }, button(`Its ${count(node.waiting)} proposals`, "p", () => page.openProposals(id))) : "", box);
    await showNode(box, id, page.openNode, () => chosen === id && box.isConnected);
  }

  return {
    name: "tree",
    async enter() {
      $("filters").replaceChildren(el("input", { type: "search", id: "search", placeholder: "Search /", "aria-label": "Search nodes", "aria-keyshortcuts": "/", value: words,
        oninput: (event) => { words = event.target.value.trim().toLowerCase(); draw(); } }));
      $("list").removeAttribute("tabindex");
      $("detail").replaceChildren(el("p", { class: "soft" }, "Choose a node."));
      const { annotated_with: labels, version } = page.state;
      $("footer").textContent = !labels ? "Rows are counted once a run has annotated the log." : labels === version ? "Rows / raw rows." : `Rows / raw rows as annotated with version ${labels}.`;
      if (!page.byId.has(chosen)) chosen = page.nodes[0]?.node_id ?? null;
      if (chosen) select(chosen);
      else draw();
    },
    leave() { $("list").replaceChildren(); $("list").setAttribute("tabindex", "0"); },
    list: () => ({ move, span: 10, keys: items(), select: (index) => move(index - items().indexOf(current())) }),
    touched() { draw(); },
    goTo() {},
    reload() { if (page.byId.has(chosen)) draw(); else return this.enter(); },
    choose(id) { chosen = id; },
    keys: { p: () => chosen && page.openProposals(chosen) },
  };
}
