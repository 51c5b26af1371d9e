// What is known of a node: counts, its rows, its neighbours. Shared by the tree and the proposals.
import { button, count, el, facts, get, saying, share, table } from "./dom.js";

const counted = (counts) => "rows" in counts ? [["rows", count(counts.rows)], ["raw rows", count(counts.raw_rows)], ["candidates", count(counts.candidates)]] : [["rows", "not annotated yet"]];

const evidenceTable = (rows, stem) => table([
  ["query", (row) => row.text], ...(stem === null ? [] : [["leaf", (row) => el("span", { class: "soft" }, row.primary.slice(stem.length))]]),
  ["raw rows", (row) => count(row.weight), "n"], ["confidence", (row) => share(row.confidence), "n"],
], rows, "Rows of the node");

const neighbours = (title, rows, open, extra) => el("div", {}, el("h3", {}, title), rows.length
  ? table([["node", (row) => el("button", { type: "button", class: "link", title: row.description, onclick: () => open(row.node_id) }, row.node_id)], ...extra,
    ["rows", (row) => (row.rows === undefined ? "–" : count(row.rows)), "n"], ["raw rows", (row) => (row.raw_rows === undefined ? "–" : count(row.raw_rows)), "n"]], rows, title)
  : el("p", { class: "soft" }, "None."));

/** Fill `box` with a node, the root for an empty id; `open(node_id)` goes to another one. */
export async function showNode(box, nodeId, open, current = () => true) {
  const node = await get("node", { id: nodeId });
  if (!current()) return;
  const evidence = el("div");
  const closest = el("div", {}, el("h3", {}, "Closest leaves"), el("p", { class: "soft" }, "Comparing…"));
  box.replaceChildren(
    el("p", {}, node.description), facts(counted(node.counts)),
    node.examples.length ? el("p", { class: "soft" }, `Examples: ${node.examples.join(" · ")}`) : "",
    el("h3", {}, "Rows"), evidence,
    node.children.length ? neighbours("Children", node.children, open, []) : "",
    nodeId ? neighbours("Siblings", node.siblings, open, []) : "", nodeId ? closest : "");
  showEvidence(evidence, nodeId, node);
  if (!nodeId) return;
  const rows = await get("closest", { id: nodeId });
  if (current()) closest.replaceWith(neighbours("Closest leaves", rows, open, [["similarity", (row) => row.similarity.toFixed(3), "n"]]));
}

function showEvidence(box, nodeId, first) {
  // Below an inner node the leaf is told by what follows the node's own id.
  const stem = first.children.length ? nodeId && `${nodeId}.` : null;
  let { evidence: rows, more } = first;
  let order = "frequent";
  const draw = () => box.replaceChildren(
    el("div", { class: "buttons" },
      ...[["frequent", "Most frequent"], ["unsure", "Least sure"]].map(([name, text]) =>
        el("button", { type: "button", "aria-pressed": String(order === name), onclick: saying(() => load(name, 0)) }, text))),
    rows.length ? evidenceTable(rows, stem) : el("p", { class: "soft" }, "No row has this label."),
    more ? el("div", { class: "buttons" }, button("More rows", "", saying(() => load(order, rows.length)))) : "");
  const load = async (name, offset) => {
    const next = await get("node", { id: nodeId, order: name, offset });
    rows = offset ? [...rows, ...next.evidence] : next.evidence;
    more = next.more;
    order = name;
    draw();
  };
  draw();
}
