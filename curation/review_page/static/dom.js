// Small helpers. Texts of the log only ever become text nodes: nothing here parses HTML.

/** An element: el("button", {type: "button", onclick: f, "aria-label": "x"}, "text", otherElement, null). */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const $ = (id) => document.getElementById(id);
export const count = (value) => (value ?? 0).toLocaleString("en");
export const share = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`);

async function call(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error("The page's server does not answer. Is `curate review --web` still running?");
  }
  if ((response.headers.get("content-type") ?? "").startsWith("application/json")) {
    const answer = await response.json();
    if (response.ok) return answer;
    throw new Error([answer.message, answer.hint].filter(Boolean).join("\n"));
  }
  throw new Error((await response.text()) || `The server answered ${response.status}.`);
}

export const get = (name, query = {}) => call(`/api/${name}?${new URLSearchParams(query)}`);
export const post = (name, body = {}) =>
  call(`/api/${name}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

let hush;
/** Say something at the bottom of the page, to eyes and screen readers alike; with `stay` until something else is said. */
export function say(text, bad = false, stay = false) {
  const status = $("status");
  status.textContent = text;
  status.classList.toggle("bad", bad);
  clearTimeout(hush);
  if (!stay) hush = setTimeout(() => (status.textContent = ""), bad ? 9000 : 2500);
}

/** A function whose failures are said instead of lost. */
export const saying = (work) => async (...given) => {
  try {
    return await work(...given);
  } catch (error) {
    say(error.message, true);
  }
};

/** Put off `work` until it was not asked for during `wait` milliseconds. */
export function later(work, wait) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), wait);
  };
}

/** A yes-or-no question. */
export function ask(text) {
  const dialog = $("ask-dialog");
  $("ask-text").textContent = text;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((answer) => dialog.addEventListener("close", () => answer(dialog.returnValue === "yes"), { once: true }));
}

export const button = (text, key, action, kind = "") =>
  el("button", { type: "button", class: kind, onclick: action, "aria-keyshortcuts": key }, text, key && " ", key && el("kbd", { "aria-hidden": "true" }, key));

export const facts = (pairs) =>
  el("dl", { class: "facts" }, pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));

/** A table of rows; columns are [title, cell(row), class]. */
export const table = (columns, rows, caption) =>
  el("table", { "aria-label": caption },
    el("thead", {}, el("tr", {}, columns.map(([title, , kind]) => el("th", { scope: "col", class: kind }, title)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, columns.map(([, cell, kind]) => el("td", { class: kind }, cell(row)))))));
