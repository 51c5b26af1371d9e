// Versions of the taxonomy and what differs between them.
import { $, button, count, el, facts, get, saying } from "./dom.js";
import { List } from "./list.js";

/** Changes as a list; each is {sign, text, before?, after?}. */
export function changesList(changes) {
  const line = ({ sign, text, before, after }) => el("li", {},
    el("strong", { class: sign === "+" ? "add" : sign === "−" ? "gone" : "" }, `${sign} `), text,
    before ? el("div", { class: "gone" }, `− ${before}`) : "", after ? el("div", { class: "add" }, `+ ${after}`) : "");
  return changes.length ? el("ul", { class: "changes" }, changes.map(line)) : el("p", { class: "soft" }, "Nothing differs.");
}

export function versionsView(page) {
  let list;
  let versions = [];

  const line = (row) => [
    el("div", {}, el("div", { class: "main" }, `Version ${row.version}`, row.current ? el("strong", {}, " (current)") : ""),
      el("div", { class: "sub" }, [row.at, row.by, row.auto ? "accepted by rule" : ""].filter(Boolean).join(" · ") || "the first")),
    el("span", { class: "n" }, `${count(row.nodes)} nodes`),
  ];

  const chosen = saying(async (version) => {
    const row = versions.find((other) => other.version === version);
    if (!row) return;
    const box = el("div");
    const others = versions.filter((other) => other.version !== version);
    const compare = saying(async (old) => box.replaceChildren(changesList(await get("compare", { from: old, to: version }))));
    const choice = el("select", { onchange: (event) => compare(event.target.value) },
      others.map((other) => el("option", { value: other.version, selected: other.version === row.from }, other.version)));
    $("detail").replaceChildren(el("h2", {}, `Version ${version}`),
      facts([["nodes", count(row.nodes)], ["leaves", count(row.leaves)], ["made", row.at], ["by", row.by], ["from", row.from], ["returns to", row.return_to], ["note", row.note], ...Object.entries(row.convergence ?? {}).map(([name, value]) => [name.replaceAll("_", " "), String(value)])]),
      row.current ? "" : el("div", { class: "buttons" }, button("Return to this version…", "", saying(() => page.returnTo(version)))),
      others.length ? el("p", {}, el("label", {}, "What differs from version ", choice)) : el("p", { class: "soft" }, "There is no other version to compare with."), box);
    if (others.length) await compare(choice.value);
  });

  return {
    name: "versions",
    async enter() {
      $("filters").replaceChildren();
      list = new List($("list"), { label: "Versions", chosen, draw: line, kind: "plain", fetchRows: async (keys) => keys.map((key) => [key, versions.find((row) => row.version === key)]) });
      await this.reload();
    },
    leave() { list.close(); list = null; },
    list: () => list,
    touched() {},
    goTo() {},
    async reload() {
      versions = await get("versions");
      list?.rows.clear();
      $("footer").textContent = page.state.is_behind ? `The tables are of another version: type \`curate run\` to bring them to version ${page.state.version}.` : "";
      list?.show(versions.map((row) => row.version), list.key);
    },
    keys: {},
  };
}
