// The page: its views, its keys, undo and redo, applying.
import { $, ask, count, el, get, post, say, saying } from "./dom.js";
import { proposalsView } from "./proposals.js";
import { seedsView } from "./seeds.js";
import { treeView } from "./tree.js";
import { changesList, versionsView } from "./versions.js";

const KEYS = [
  ["j, k, ↓, ↑", "next, previous"], ["PageDown, PageUp, Home, End", "further"], ["a, r, e", "accept, reject, edit"],
  ["c", "let it wait again, take a label away"], ["u, Shift+U", "undo, redo (also Ctrl+Z, Ctrl+Y)"], ["p", "proposals of the node"],
  ["1, 2, 3, 4", "proposals, tree, seeds, versions"], ["/", "search"], ["Escape", "back to the list"], ["?", "this help"],
];

const page = {
  state: null,
  nodes: [],
  byId: new Map(),
  view: null,
  by: () => $("by").value.trim(),
  /** Do something that changes what was decided, and show what it touched. */
  async step(name, body = {}) {
    const answer = await post(name, { ...body, by: page.by() || null });
    await settle(answer.state);
    await page.view.touched(answer);
    if (answer.title) say(name === "undo" ? `Undone: ${answer.title}` : name === "redo" ? `Done again: ${answer.title}` : `${answer.title[0].toUpperCase()}${answer.title.slice(1)}`);
    return answer;
  },
  /** Save a form: the list has the focus at once, so that the next key means the list; a mistake brings it back. */
  submit(event, save) {
    event.preventDefault();
    const field = document.activeElement;
    $("list").focus();
    inTurn(() => save().catch((error) => {
      field.focus();
      throw error;
    }));
  },
  openNode(id) {
    views.tree.choose(id);
    return saying(open)("tree");
  },
  async returnTo(version) {
    if (!(await ask(`Make a new version that has the tree of version ${version}? Decisions that were not applied belong to the version shown now.`))) return;
    const answer = await post("return", { version, by: page.by() || null });
    await settle(answer.state);
    await page.view.reload();
    say(`Version ${answer.version} is made, with the tree of version ${version}.`);
  },
  openProposals(node) {
    views.proposals.narrow(node);
    return saying(open)("proposals");
  },
  nodeOptions: (id = "nodes") => el("datalist", { id },
    page.nodes.filter((node) => (id === "leaves" ? node.is_leaf : !node.is_other)).map((node) => el("option", { value: node.node_id }))),
};
const views = { proposals: proposalsView(page), tree: treeView(page), seeds: seedsView(page), versions: versionsView(page) };

async function settle(state) {
  const anew = page.state && page.state.material !== state.material;
  page.state = state;
  document.title = `Review of ${state.workspace}`;
  $("workspace").textContent = `Review of ${state.workspace}`;
  $("version").textContent = `version ${state.version}`;
  $("tab-proposals").querySelector(".count").textContent = state.proposals.waiting ? count(state.proposals.waiting) : "";
  $("tab-seeds").querySelector(".count").textContent = state.seeds.all ? count(state.seeds.all - state.seeds.labelled) : "";
  for (const name of ["undo", "redo"]) {
    $(name).disabled = state[name] === null;
    $(name).title = state[name] ? `${name} “${state[name]}”` : `nothing to ${name}`;
  }
  $("trouble").hidden = !state.trouble;
  if (state.trouble) $("trouble").replaceChildren(
    el("span", {}, [state.trouble.message, state.trouble.hint, "Until then decisions are in the journal only."].filter(Boolean).join("\n")),
    state.is_wrong ? el("button", { type: "button", onclick: saying(putAway) }, "Put decisions.yaml away") : "");
  if (anew) await anewMaterial();
  else if (page.view?.name === "tree") await nodes();
}

async function nodes() {
  page.nodes = await get("tree");
  page.byId = new Map(page.nodes.map((node) => [node.node_id, node]));
}

async function anewMaterial() {
  await nodes();
  await page.view?.reload();
  say("The workspace has changed; this is its new state.");
}

async function open(name) {
  page.view?.leave();
  page.view = views[name];
  for (const tab of document.querySelectorAll('[role="tab"]')) {
    const mine = tab.dataset.view === name;
    tab.setAttribute("aria-selected", String(mine));
    tab.tabIndex = mine ? 0 : -1;
    if (mine) $("panes").setAttribute("aria-labelledby", tab.id);
  }
  if (name === "tree") await nodes();
  await page.view.enter();
  if (name !== "tree") $("list").focus({ preventScroll: true });
}

const back = saying(async (name) => {
  const answer = await page.step(name);
  page.view.goTo(answer);
});

async function putAway() {
  if (!(await ask("Move decisions.yaml to review/decided and begin anew? What is in it is kept there, and no longer counts."))) return;
  await settle((await post("put_away")).state);
  await page.view.reload();
}

const plural = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

/** What applying would do, as elements. */
function previewed(shown) {
  const made = shown.to === null ? "No version is made." : `Version ${shown.from} becomes version ${shown.to}; ${count(shown.again)} of ${plural(shown.rows, "annotated row")} will be annotated again.`;
  return [
    el("p", {}, `${plural(shown.accepted, "proposal")} accepted, ${count(shown.rejected)} rejected${shown.own ? `, ${plural(shown.own, "operation")} of your own` : ""}. ${made}`),
    ...shown.notes.map((said) => el("p", { class: said.includes(" does nothing") || said.includes(" is dropped") ? "gone" : "" }, said)),
    shown.to === null ? "" : changesList(shown.changes)];
}

const preview = saying(async () => {
  const dialog = $("apply-dialog");
  let shown = null;
  say("Looking at what would change…", false, true);
  try {
    shown = await get("preview");
    $("apply-body").replaceChildren(...previewed(shown));
  } catch (error) {
    $("apply-body").replaceChildren(el("p", { class: "gone" }, error.message));
  }
  say("");
  $("apply-now").disabled = !shown || !(shown.to || shown.rejected);
  dialog.returnValue = "";
  dialog.showModal();
  dialog.onclose = saying(async () => {
    if (dialog.returnValue !== "apply") return;
    say("Making the new version…", false, true);
    const answer = await post("apply", { seal: shown.seal, by: page.by() || null });
    await settle(answer.state);
    await open("versions");
    say(answer.version ? `Version ${answer.version} is made. Type \`curate run\` to annotate the rows that it touches.` : "Noted what was rejected.");
  });
});

function help() {
  $("keys").replaceChildren(...KEYS.flatMap(([keys, text]) => [el("dt", {}, el("kbd", {}, keys)), el("dd", {}, text)]));
  $("help-dialog").showModal();
}

const common = {
  j: () => page.view.list()?.move(1), k: () => page.view.list()?.move(-1), u: () => back("undo"), U: () => back("redo"),
  "/": () => { $("search")?.focus(); $("search")?.select(); }, "?": help,
  ...Object.fromEntries(Object.keys(views).map((name, at) => [String(at + 1), () => saying(open)(name)])),
};
const moves = {
  ArrowDown: (list) => list.move(1), ArrowUp: (list) => list.move(-1), PageDown: (list) => list.move(list.span), PageUp: (list) => list.move(-list.span),
  Home: (list) => list.select(0), End: (list) => list.select(list.keys.length - 1),
};

let busy = Promise.resolve();
/** Key presses act one after the other, however fast they come: each sees what the one before it selected. */
function inTurn(action) {
  busy = busy.then(saying(action));
}

document.addEventListener("keydown", (event) => {
  const { target, key } = event;
  const typing = target.matches("input, textarea, select");
  const undoing = (event.ctrlKey || event.metaKey) && !event.altKey && { z: event.shiftKey ? "redo" : "undo", y: "redo" }[key.toLowerCase()];
  let action;
  if (document.querySelector("dialog[open]") || event.isComposing) return;
  if (undoing && !typing) action = () => back(undoing);
  else if (event.ctrlKey || event.metaKey || event.altKey) return;
  else if (key === "Escape" && target.id === "search") action = () => $("list").focus();
  else if (key === "Enter" && target.id === "search") action = () => $("list").focus();
  else if (typing) return;
  else if (target === $("list") && key in moves && page.view.list()) action = () => moves[key](page.view.list());
  else if ($("single-keys").checked || key.length > 1) {
    if (key === "Enter" && target.matches("button, a")) return;
    action = page.view.keys[key] ?? common[key];
  }
  if (!action) return;
  event.preventDefault();
  // What a person types after / must arrive in the field, whatever is under way.
  if (key === "/" || key === "?") action();
  else inTurn(action);
});

const tabs = [...document.querySelectorAll('[role="tab"]')];
for (const tab of tabs) {
  tab.addEventListener("click", () => saying(open)(tab.dataset.view));
  tab.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by) tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length].focus();
  });
}
$("undo").addEventListener("click", () => inTurn(() => back("undo")));
$("redo").addEventListener("click", () => inTurn(() => back("redo")));
$("apply").addEventListener("click", preview);
$("help").addEventListener("click", help);
$("by").value = localStorage.getItem("by") ?? "";
$("by").addEventListener("change", () => { localStorage.setItem("by", page.by()); saying(() => page.view.reload())(); });
$("single-keys").checked = localStorage.getItem("single-keys") !== "off";
$("single-keys").addEventListener("change", (event) => localStorage.setItem("single-keys", event.target.checked ? "on" : "off"));
window.addEventListener("focus", () => page.state && saying(async () => settle(await get("state")))());

try {
  await settle(await get("state"));
  if (page.state.by !== null) $("by").value = page.state.by;
  await nodes();
  const { proposals, seeds } = page.state;
  await open(proposals.waiting ? "proposals" : seeds.labelled < seeds.all ? "seeds" : proposals.all ? "proposals" : "tree");
} catch (error) {
  $("detail").replaceChildren(el("p", { class: "gone", role: "alert" }, error.message));
}
