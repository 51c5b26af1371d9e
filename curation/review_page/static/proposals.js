// Proposals: list, filter, decide, edit.
import { $, ask, button, count, el, facts, get, later, post, say, saying, share, table } from "./dom.js";
import { List } from "./list.js";
import { showNode } from "./node.js";

const KINDS = ["add", "merge", "split", "rename", "move", "drop", "describe"];
const SORTS = { confidence: "surest first", weight: "most raw rows first", rows: "most rows first", trend: "strongest trend first", purity: "purest first", node: "by node" };
const FIELDS = { add: ["name", "description", "target", "examples", "again"], rename: ["name"], describe: ["description"], merge: ["target"], move: ["target"], split: ["parts"], drop: [] };
const TITLES = { name: "Name", description: "Description", examples: "Examples, one a line", again: "Leaves elsewhere to annotate again, one a line", note: "Note" };
const place = (id) => id ?? "level 1";

const last = (id) => place(id).split(".").at(-1);

/** What a proposal asks for, as a sentence; `called` says how ids are written. */
function gist({ kind, node_id: node, target, name }, called = place) {
  return {
    add: `Add ${name} to ${called(node)}`, merge: `Merge ${called(node)} into ${called(target)}`, split: `Split ${called(node)}`,
    rename: `Rename ${called(node)} to ${name}`, move: `Move ${called(node)} to ${called(target)}`, drop: `Drop ${called(node)}`,
    describe: `Describe ${called(node)} anew`,
  }[kind];
}

const trendOf = (trend) => trend === null ? null
  : el("span", { class: trend > 0.02 ? "up" : trend < -0.02 ? "down" : "" }, `${trend > 0 ? "+" : ""}${(100 * trend).toFixed(1)} points`);

/** Inputs for the leaves of a split; `inputs.parts.read()` gives what they hold. */
function partsFields(parts, inputs) {
  const rows = parts.map((part) => ({
    name: el("input", { value: part.name, autocomplete: "off", spellcheck: "false" }),
    description: el("textarea", { value: part.description }),
    examples: el("textarea", { value: (part.examples ?? []).join("\n") }),
  }));
  inputs.parts = { focus: () => rows[0]?.name.focus(), read: () => rows.map(({ name, description, examples }) =>
    ({ name: name.value.trim(), description: description.value.trim(), examples: examples.value.split("\n").map((line) => line.trim()).filter(Boolean) })) };
  return rows.map((row, at) => el("fieldset", {}, el("legend", {}, `Leaf ${at + 1}`), ["name", "description", "examples"].map((name) => el("label", {}, TITLES[name], row[name]))));
}

export function proposalsView(page) {
  const filter = { words: "", kind: "", status: "waiting", source: "", sort: "confidence", node: "" };
  let list;
  let shown = 0;
  let current = null;

  const choice = (name, label, options) => el("select", { "aria-label": label, value: filter[name], onchange: saying((event) => { filter[name] = event.target.value; return load(); }) },
    options.map(([value, text]) => el("option", { value, selected: filter[name] === value }, text)));

  function drawFilters() {
    $("filters").replaceChildren(
      el("input", { type: "search", id: "search", placeholder: "Search /", "aria-label": "Search proposals", "aria-keyshortcuts": "/", value: filter.words,
        oninput: later(saying((event) => { filter.words = event.target.value; return load(); }), 150) }),
      choice("status", "Status", [["", "all"], ...["waiting", "accepted", "edited", "rejected", "impossible"].map((name) => [name, name])]),
      choice("kind", "Kind", [["", "every kind"], ...KINDS.map((name) => [name, name])]),
      choice("source", "Source", [["", "every source"], ...["refine", "expand", "induce"].map((name) => [name, name])]),
      choice("sort", "Order", Object.entries(SORTS)),
      filter.node && el("button", { type: "button", "aria-label": `Only ${filter.node}; show all nodes`, onclick: saying(() => { filter.node = ""; drawFilters(); return load(); }) }, `${filter.node} ✕`));
  }

  /** The node that a proposal is about as it was decided: the target of a new leaf is its parent. */
  const nodeOf = (p) => p.kind === "merge" ? p.target : p.kind === "add" && p.decided && "target" in p.decided ? p.decided.target : p.node_id;

  async function load() {
    const mine = (shown += 1);
    const keys = await get("proposals", filter);
    if (mine !== shown || !list) return;
    list.rows.clear();
    list.show(keys, list.key);
    $("footer").replaceChildren(
      page.state.is_behind ? "The next `curate run` makes proposals for this version." : page.state.has_proposals ? `${count(keys.length)} listed` : "No run has made proposals yet: type `curate run`.",
      ...(keys.length > 1 ? [button("Accept all listed", "", saying(() => decideAll("accept"))), button("Reject all listed", "", saying(() => decideAll("reject")))] : []));
  }

  async function decideAll(decision) {
    const question = `${decision === "accept" ? "Accept" : "Reject"} those of the ${count(list.keys.length)} listed proposals that wait? One undo takes it back.`;
    if (await ask(question)) await page.step("decide", { ids: list.keys, decision, waiting_only: true });
  }

  const line = (row) => [
    el("span", { class: "kind" }, row.kind),
    el("div", {}, el("div", { class: "main", title: gist(row) }, gist(row, last)), el("div", { class: "sub" },
      el("span", { class: row.status }, row.status), ` · ${count(row.rows)} rows · ${count(row.weight)} raw rows`)),
    el("span", { class: "n", title: "confidence" }, share(row.confidence)),
  ];

  const chosen = (key) => {
    current = null;
    if (key === null) $("detail").replaceChildren(el("p", { class: "soft" }, "Nothing is listed. Change the filter, or press u to undo."));
    else saying(show)(key);
  };

  async function show(key) {
    const proposal = await get("proposal", { id: key });
    if (!list || list.key !== key) return;
    current = proposal;
    draw();
    around(key);
  }

  // Neighbours are read only when a person stays, not at each step through the list.
  const around = later(saying(async (key) => {
    const box = $("around");
    const node = current && nodeOf(current);
    if (!box || list?.key !== key) return;
    if (!node || page.byId.has(node)) await showNode(box, node ?? "", page.openNode, () => list?.key === key);
    else box.replaceChildren(el("p", { class: "soft" }, `Version ${page.state.version} has no such node.`));
  }), 250);

  function draw() {
    const p = current;
    const value = p.decided ?? {};
    const wording = value.description ?? p.description;
    const now = p.node_id ? p.about[p.node_id] : null;
    $("detail").replaceChildren(
      el("h2", {}, gist({ ...p, node_id: p.kind === "add" ? nodeOf(p) : p.node_id, name: value.name ?? p.name, target: value.target ?? p.target })),
      el("p", {}, el("strong", { class: p.status }, p.status), value.by ? ` by ${value.by}` : "", value.note ? ` — ${value.note}` : ""),
      el("div", { class: "buttons" },
        button("Accept", "a", saying(() => decide("accept")), p.status === "waiting" ? "primary" : ""), button("Reject", "r", saying(() => decide("reject"))),
        button("Edit", "e", saying(edit)), p.decided ? button("Let it wait", "c", saying(() => decide(null))) : ""),
      p.problem ? el("p", { class: "gone" }, `It cannot be carried out: ${p.problem}`) : "",
      el("p", {}, p.reason),
      facts([["confidence", share(p.confidence)], ["purity", share(p.purity)], ["rows", count(p.rows)], ["raw rows", count(p.weight)],
        ["trend", trendOf(p.trend)], ["from", p.source], ["for version", p.base_version]]),
      wording ? el("div", {}, el("h3", {}, "Description"), el("p", {}, wording)) : "",
      p.kind === "describe" && now ? el("p", { class: "soft" }, `Now: ${now}`) : "",
      value.examples?.length ? el("div", {}, el("h3", {}, "Examples"), el("p", {}, value.examples.join(" · "))) : "",
      value.again?.length ? el("div", {}, el("h3", {}, "Annotated again too"), el("ul", {}, value.again.map((node) => el("li", {}, node)))) : "",
      ...(value.parts ?? p.parts).map((part) => el("div", { class: "box" }, el("strong", {}, part.name), el("p", {}, part.description), el("p", { class: "soft" }, (part.examples ?? []).join(" · ")))),
      el("h3", {}, "Evidence"),
      p.takes_examples && !value.examples ? el("p", { class: "soft" }, `Accepted, ${p.evidence.length === 1 ? "this query becomes an example" : `all ${count(p.evidence.length)} become examples`} of ${last(p.target ?? value.name ?? p.name)}.`) : "",
      p.evidence.length ? table([["query", (row) => row.text], ["raw rows", (row) => count(row.weight), "n"]], p.evidence, "Evidence") : el("p", { class: "soft" }, "None."),
      el("h2", {}, place(nodeOf(p))), el("div", { id: "around" }, el("p", { class: "soft" }, "…")));
    $("detail").scrollTop = 0;
  }

  async function decide(decision, more = {}) {
    const key = list?.key;
    if (!key) return;
    await page.step("decide", { ids: [key], decision, ...more });
    if (decision && list?.key === key) list.move(1);
  }

  async function edit() {
    if (!list?.key) return;
    if (!current) await show(list.key); // the key came before the answer
    const p = current;
    const value = { ...p, examples: p.evidence.map((row) => row.text), ...(p.decided ?? {}) };
    const inputs = {};
    const field = (name) => {
      if (name === "parts") return partsFields(value.parts, inputs);
      const lines = name === "examples" || name === "again";
      const text = lines ? (value[name] ?? []).join("\n") : name === "target" && p.kind === "add" ? value.target ?? p.node_id ?? "" : value[name] ?? "";
      const title = name === "target" ? (p.kind === "merge" ? "Merge into" : "Parent (empty: level 1)") : TITLES[name];
      const long = name === "description" || lines;
      inputs[name] = long ? el("textarea", { value: text }) : el("input", { value: text, list: name === "target" ? "nodes" : null, autocomplete: "off", spellcheck: "false" });
      return el("label", {}, title, inputs[name]);
    };
    const read = (name) => name === "parts" ? inputs.parts.read() : name === "examples" || name === "again" ? inputs[name].value.split("\n") : inputs[name].value.trim() || null;
    const save = (event) => page.submit(event, () => decide("edit", Object.fromEntries(Object.keys(inputs).map((name) => [name, read(name)]))));
    $("detail").replaceChildren(el("form", { class: "form", onsubmit: save, onkeydown: (event) => {
      if (event.key === "Escape") { draw(); around(p.proposal_id); $("list").focus(); }
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
    } },
      el("h2", {}, gist(p)), el("p", { class: "soft" }, "Saving accepts it as edited. Ctrl+Enter saves, Escape leaves it as it was."),
      FIELDS[p.kind].map(field), field("note"), page.nodeOptions(),
      el("div", { class: "buttons" }, el("button", { class: "primary" }, "Save and accept"), button("Cancel", "", () => { draw(); around(p.proposal_id); }))));
    Object.values(inputs)[0].focus();
  }

  return {
    name: "proposals",
    enter() {
      drawFilters();
      list = new List($("list"), { label: "Proposals", chosen, draw: line,
        fetchRows: async (keys) => (await get("rows", { ids: keys.join(",") })).map((row) => [row.proposal_id, row]) });
      return load();
    },
    leave() { list.close(); list = null; },
    list: () => list,
    /** Show again what a step touched. */
    touched(answer) {
      list.forget(answer.proposals);
      if (answer.proposals.includes(list.key)) return show(list.key);
    },
    goTo(answer) {
      const at = list.keys.indexOf(answer.proposals[0]);
      if (at >= 0) list.select(at);
      else if (answer.proposals.length) say(`${answer.title}: not in this list`);
    },
    reload: load,
    narrow(node) { Object.assign(filter, { node, status: "", words: "", kind: "", source: "" }); },
    keys: { a: () => decide("accept"), r: () => decide("reject"), e: edit, c: () => decide(null) },
  };
}
