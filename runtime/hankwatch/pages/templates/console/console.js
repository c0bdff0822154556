// The console's one script. The pages are complete without it; it keeps them fresh, says what happened, and knows keys.
"use strict";

const body = document.body;
const main = document.getElementById("main");

// --- parts: a page asks for itself again, and what has changed in it is swapped ---------------------------------

let asking = false, askAgain = false, restUntil = 0;

async function refresh() {
  if (asking || document.hidden) { askAgain = true; return; }
  asking = true;
  askAgain = false;
  const wait = restUntil - performance.now();
  if (wait > 0) await new Promise((done) => setTimeout(done, wait));
  const began = performance.now();
  try {
    const answer = await fetch(body.dataset.fresh || location.pathname + location.search, { headers: { Accept: "text/html" } });
    if (answer.redirected) { location.reload(); return; }
    if (answer.ok) {
      swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
      dispatchEvent(new Event("refreshed"));
    }
  } catch { /* the server is away; the stream says so */ }
  // A page that is dear to make is made less often.
  const took = performance.now() - began;
  restUntil = performance.now() + Math.max(700, 4 * took);
  asking = false;
  if (askAgain || main.querySelector(".reading")) refresh();
}

function swap(fresh) {
  for (const part of main.querySelectorAll("[data-part]")) {
    const next = fresh.getElementById(part.id);
    if (!next || next.isEqualNode(part) || part.contains(document.activeElement) && isTyping(document.activeElement)) continue;
    put(part, document.importNode(next, true).childNodes);
  }
  if (!body.dataset.fresh) document.title = fresh.title;
  enliven();
}

// Replaces what stands in a part; what is open, scrolled to or focused in it stays so, and rows that are new are marked.
function put(part, nodes) {
  const known = new Set([...part.querySelectorAll("[data-key]")].map((one) => one.dataset.key));
  const open = new Map([...part.querySelectorAll("details")].map((one, at) => [one.id || at, one.open]));
  const scrolls = [...part.querySelectorAll("[id]")].filter((one) => one.scrollTop || one.scrollLeft).map((one) => [one.id, one.scrollTop, one.scrollLeft]);
  const focused = part.contains(document.activeElement) ? addressOf(document.activeElement) : null;
  part.replaceChildren(...nodes);
  for (const [at, one] of [...part.querySelectorAll("details")].entries()) one.open = open.get(one.id || at) ?? one.open;
  for (const [id, top, left] of scrolls) document.getElementById(id)?.scrollTo({ top, left, behavior: "instant" });
  if (known.size) for (const one of part.querySelectorAll("[data-key]")) one.classList.toggle("new", !known.has(one.dataset.key));
  if (focused) [...part.querySelectorAll("a[href], button, summary, [tabindex]")].find((one) => addressOf(one) === focused)?.focus({ preventScroll: true });
}

const isTyping = (one) => one.matches("input, textarea, select") || one.isContentEditable;
const addressOf = (one) => one.id || one.getAttribute("href") || one.parentElement.id + one.textContent;

// --- the live stream ---------------------------------------------------------------------------------------------

// A page that nobody looks at holds no stream, for a browser has six for a server; it asks for what it missed later.
function listen(address) {
  const state = document.querySelector("[data-link-state]"), words = document.querySelector("[data-link-words]");
  const wanted = new Set((body.dataset.parts || "").split(" "));
  let stream = null, told = "", isStale = "moves" in body.dataset;

  function open() {
    if (stream || document.hidden) return;
    stream = new EventSource(told ? `${address}${address.includes("?") ? "&" : "?"}told=${told}` : address);
    stream.onopen = () => {
      state.hidden = false;
      state.classList.remove("lost");
      words.textContent = "live";
      if (isStale) refresh();
      isStale = false;
    };
    stream.onerror = () => {
      if (!state.classList.contains("lost")) words.textContent = `not connected since ${new Date().toLocaleTimeString("en-GB")}`;
      isStale = true;
      state.hidden = false;
      state.classList.add("lost");
      for (const one of main.querySelectorAll(".outcome.running")) one.textContent = "○ running when last seen";
      if (stream.readyState === EventSource.CLOSED) refresh(); // refused: the login is over, and the page leads to another
    };
    stream.addEventListener("here", note);
    stream.addEventListener("changed", (message) => { if (wanted.has(message.data)) refresh(); });
    stream.addEventListener("notice", (message) => { note(message); toast(JSON.parse(message.data)); });
  }

  function note(message) { told = message.lastEventId; }

  function rest() {
    stream?.close();
    stream = null;
    isStale = true;
  }

  document.addEventListener("visibilitychange", () => document.hidden ? rest() : open());
  addEventListener("pagehide", rest);
  addEventListener("pageshow", open);
  isStale ||= document.hidden;
  open();
}

// --- toasts ------------------------------------------------------------------------------------------------------

// { title, text, look: "good" | "warn" | "bad", href }: all of it is text.
function toast(said) {
  const one = document.createElement("div");
  one.className = `toast ${["good", "warn", "bad"].includes(said.look) ? said.look : ""}`;
  const title = document.createElement(said.href && said.href.startsWith("/") ? "a" : "strong");
  title.textContent = said.title;
  if (title.tagName === "A") title.setAttribute("href", said.href);
  const close = document.createElement("button");
  close.type = "button";
  close.className = "plain";
  close.textContent = "×";
  close.setAttribute("aria-label", "Dismiss");
  close.onclick = () => one.remove();
  const text = document.createElement("p");
  text.textContent = said.text || "";
  one.append(title, close, text);
  const all = document.querySelector("[data-toasts]");
  all.append(one);
  while (all.children.length > 5) all.firstElementChild.remove();
  setTimeout(() => one.remove(), 12000);
}

// --- what acts: buttons with data-post, forms with data-send ------------------------------------------------------

// data-post="/api/…" data-body='{…}' data-method data-asks: sends JSON, then refreshes or follows data-then.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-post]");
  if (!button || button.disabled) return;
  if (button.dataset.asks && !confirm(button.dataset.asks)) return;
  button.disabled = true;
  await send(button.dataset.method || "POST", button.dataset.post, button.dataset.body, button.dataset.then);
  button.disabled = false;
});

// data-send="/api/…" on a form: its controls become JSON, named by their path in it ("verifier/path"); data-as says what
// a text stands for, data-query what goes into the address, data-changed that only what was changed is sent.
document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-send]");
  if (!form) return;
  event.preventDefault();
  const button = form.querySelector("[type=submit]");
  const [made, query] = written(form);
  button.disabled = true;
  form.querySelectorAll(".field-fault").forEach((one) => one.remove());
  form.querySelectorAll("[aria-invalid]").forEach((one) => one.removeAttribute("aria-invalid"));
  try {
    const answer = await fetch(form.dataset.send + (query ? `?${query}` : ""), { method: form.dataset.method || "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(made) });
    const said = await answer.json().catch(() => ({}));
    if (answer.ok) location.assign(form.dataset.then.replace("{id}", encodeURIComponent(said.id)));
    else explain(form, said.faults?.length ? said.faults : [said.detail || `It failed (${answer.status})`]);
  } catch {
    explain(form, ["The server cannot be reached; nothing was sent, or its answer was lost."]);
  }
  button.disabled = false;
});

function written(form) {
  const made = {}, query = new URLSearchParams();
  for (const one of form.elements) {
    if (!one.name || one.matches(":disabled")) continue;
    const group = one.type === "checkbox" && one.hasAttribute("value") ? [...form.querySelectorAll(`[name="${one.name}"]`)] : [one];
    if ("changed" in form.dataset ? !group.some(isChanged) : one.type === "checkbox" ? !group.some((box) => box.checked) : one.value.trim() === "") continue;
    if ("query" in one.dataset) { query.set(one.name, one.value); continue; }
    const value = group.length > 1 ? group.filter((box) => box.checked).map((box) => box.value) : one.type === "checkbox" ? one.checked : one.value.trim() === "" ? null : meant(one.value.trim(), one.dataset.as);
    const path = one.name.split("/"), last = path.pop();
    path.reduce((inside, key) => (inside[key] ??= {}), made)[last] = value;
  }
  return [made, query.toString()];
}

const isChanged = (one) => one.type === "checkbox" ? one.checked !== one.defaultChecked : one.options ? !one.selectedOptions[0]?.defaultSelected : one.value !== one.defaultValue;

// What cannot be read is sent as it was typed: the server says what is wrong with it.
function meant(text, as) {
  if (as === "number") return Number.isNaN(Number(text)) ? text : Number(text);
  if (as === "boolean") return text === "true";
  if (as === "list") return text.split(/[\s,]+/).filter(Boolean);
  if (as === "json") try { return JSON.parse(text); } catch { return text; }
  const time = as === "seconds" && /^(\d+(?:\.\d+)?)\s*(s|m|min|h|d)?$/.exec(text);
  return time ? Number(time[1]) * { s: 1, m: 60, min: 60, h: 3600, d: 86400 }[time[2] || "s"] : text;
}

// Each fault stands at the field that it names, or else above all fields.
function explain(form, faults) {
  const controls = [...form.elements].filter((one) => one.name && one.type !== "hidden" && !one.matches(":disabled"));
  let first = null;
  for (const fault of faults) {
    const place = /^(?:body\.)?([\w/.]+): /.exec(fault)?.[1]?.replaceAll(".", "/") || "";
    const at = controls.find((one) => one.name === place) || controls.find((one) => place.startsWith(`${one.name}/`)) || controls.find((one) => place && one.name.startsWith(`${place}/`));
    const told = document.createElement("p");
    told.className = "fault field-fault";
    told.setAttribute("role", "alert");
    told.textContent = fault;
    if (at) {
      told.id = `${at.id || at.name}-fault`;
      at.setAttribute("aria-invalid", "true");
      at.setAttribute("aria-describedby", `${(at.getAttribute("aria-describedby") || "").replace(told.id, "")} ${told.id}`.trim());
      const open = at.closest("details");
      if (open) open.open = true;
      (at.closest("fieldset.boxes, .field, label") || at).append(told);
    } else form.prepend(told);
    first ||= at || told;
  }
  if (first) { first.focus(); first.scrollIntoView({ block: "center" }); }
}

// data-switches="name" shows the fieldset data-case="name=value" of what is chosen, and the others are not sent.
function choose(select) {
  for (const one of document.querySelectorAll(`[data-case^="${select.dataset.switches}="]`)) one.hidden = one.disabled = one.dataset.case !== `${select.dataset.switches}=${select.value}`;
}
document.addEventListener("change", (event) => { if (event.target.matches("[data-switches]")) choose(event.target); });

async function send(method, address, json, then) {
  try {
    const headers = json ? { "Content-Type": "application/json" } : {};
    const answer = await fetch(address, { method, headers, body: json || undefined });
    const said = answer.status === 204 ? {} : await answer.json().catch(() => ({}));
    if (!answer.ok) {
      toast({ title: said.detail || `It failed (${answer.status})`, text: (said.faults || []).slice(1).join("; ") || said.hint, look: "bad" });
      return null;
    }
    if (said.message) toast({ title: said.message, look: "good" });
    if (then) location.assign(then);
    else refresh();
    return said;
  } catch {
    toast({ title: "The server cannot be reached", text: "Nothing was sent, or its answer was lost.", look: "bad" });
    return null;
  }
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copies]");
  if (!button) return;
  await navigator.clipboard?.writeText(document.getElementById(button.dataset.copies).textContent);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});

// --- small comforts, applied again to whatever was swapped in -----------------------------------------------------

function enliven() {
  for (const one of document.querySelectorAll("[data-scripted], [data-filters], [data-help]")) one.hidden = false;
  for (const one of document.querySelectorAll("[data-ago]")) {
    one.title = one.dateTime;
    one.textContent = ago(one.dateTime);
  }
  document.querySelectorAll("[data-filters]").forEach(filterRows);
  const list = main.querySelector(".tree.long"), now = list?.querySelector(".now");
  if (now && !list.scrollTop) list.scrollTop = now.offsetTop - list.offsetTop - list.clientHeight / 2;
  document.querySelectorAll("[data-switches]").forEach(choose);
}

function ago(stamp) {
  const seconds = (Date.now() - Date.parse(stamp)) / 1000;
  const ahead = seconds < 0 ? "in " : "", behind = seconds < 0 ? "" : " ago";
  const size = Math.abs(seconds);
  if (size > 30 * 86400) return new Date(stamp).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) if (size >= length) return `${ahead}${Math.round(size / length)} ${unit}${behind}`;
  return size < 5 ? "now" : `${ahead}${Math.round(size)} s${behind}`;
}
setInterval(() => { if (!document.hidden) for (const one of document.querySelectorAll("[data-ago]")) one.textContent = ago(one.dateTime); }, 5000);

function filterRows(frame) {
  const words = frame.querySelector("[data-filter]").value.toLowerCase().split(/\s+/);
  for (const row of document.querySelectorAll(frame.dataset.filters)) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
}
document.addEventListener("input", (event) => { const frame = event.target.closest("[data-filters]"); if (frame) filterRows(frame); });

// --- the playground: each edit is asked about, and only the latest answer counts -----------------------------------

function playground(frame) {
  const field = frame.querySelector("[data-play-config]"), lines = frame.querySelector("[data-play-lines]");
  const result = frame.querySelector("[data-play-result]"), begin = document.querySelector("[data-play-begin]");
  const written = field.value;
  let asked = null, later = 0, playedOn = null;

  async function ask(withinS = frame.dataset.firstS) {
    asked?.abort();
    const mine = asked = new AbortController();
    const wanted = {
      config: field.value, origin: frame.dataset.origin, codon: begin.codon.value || null,
      where: begin.where.checked, render: begin.render.checked, withinS: Number(withinS),
    };
    result.classList.add("play-busy");
    try {
      const answer = await fetch(frame.dataset.play, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(wanted), signal: mine.signal,
      });
      if (answer.redirected) { location.reload(); return; }
      const told = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (mine !== asked) return;
      const next = told.querySelector("[data-play-answer]");
      if (next) show(next);
      else toast({ title: told.querySelector(".fault")?.textContent || `It failed (${answer.status})`, look: "bad" });
      result.classList.remove("play-busy");
    } catch (error) {
      if (error.name === "AbortError" || mine !== asked) return;
      result.classList.remove("play-busy");
      toast({ title: "The server cannot be reached", text: "What is shown is of an earlier config.", look: "bad" });
    }
  }

  function show(next) {
    const fresh = document.importNode(next, true);
    if (result.firstElementChild?.isEqualNode(fresh)) return;
    put(result, [fresh]);
    marked();
  }

  // Numbers beside the text, and a mark at each line that something is wrong with.
  function number() {
    const count = field.value.split("\n").length;
    lines.replaceChildren(...Array.from({ length: count }, (_, at) => {
      const one = document.createElement("span");
      one.textContent = `${at + 1}`;
      return [one, "\n"];
    }).flat());
    for (const fault of result.querySelectorAll("[data-line]")) {
      const line = lines.children[fault.dataset.line - 1];
      if (line && !line.className) line.className = fault.className;
    }
    lines.scrollTop = field.scrollTop;
  }

  function marked() {
    number();
    for (const fault of result.querySelectorAll("[data-line]")) {
      const go = document.createElement("button");
      go.type = "button";
      go.textContent = "Go to it";
      go.onclick = () => goTo(Number(fault.dataset.line), Number(fault.dataset.column));
      fault.querySelector(".what").append(" ", go);
    }
    if (result.querySelector("[data-partial]") && playedOn !== field.value) {
      playedOn = field.value;
      ask(frame.dataset.wholeS);
    }
  }

  function goTo(line, column) {
    const at = field.value.split("\n").slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0) + column - 1;
    field.focus();
    field.setSelectionRange(at, at);
    field.scrollTop = Math.max(0, (line - 5) * parseFloat(getComputedStyle(field).lineHeight));
  }

  function changed() {
    frame.querySelector("[data-play-edited]").hidden = field.value === written;
    number();
    asked?.abort();
    playedOn = null;
    askIn(300);
  }

  function askIn(ms) {
    clearTimeout(later);
    later = setTimeout(() => { later = 0; ask(); }, ms);
  }

  // The run has grown. What was only played in part stays a part of it.
  addEventListener("refreshed", () => {
    if (!later && !result.matches(".play-busy") && !result.querySelector(".play-part")) askIn(2000);
  });

  field.addEventListener("scroll", () => { lines.scrollTop = field.scrollTop; });
  field.addEventListener("input", changed);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Tab" || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    field.setRangeText("  ", field.selectionStart, field.selectionEnd, "end");
    changed();
  });
  begin.sentinel.addEventListener("change", () => begin.submit());
  for (const one of begin.querySelectorAll("[data-play-ask]")) one.addEventListener("change", () => { playedOn = null; ask(); });
  frame.querySelector("[data-play-reset]").onclick = () => { field.value = written; changed(); };
  marked();
}
document.querySelectorAll("[data-play]").forEach(playground);

// --- keys ----------------------------------------------------------------------------------------------------------

const keys = document.querySelector("[data-keys]");
let afterG = false;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target)) { if (event.key === "Escape") event.target.blur(); return; }
  const run = body.dataset.run;
  const places = { r: "/", w: "/watches", ...(run && { o: run, e: `${run}/events`, s: `${run}/sentinels`, p: `${run}/playground` }) };
  if (afterG && places[event.key]) { afterG = false; location.assign(places[event.key]); return; }
  afterG = event.key === "g";
  if (event.key === "/") {
    const field = document.querySelector("[data-filter]");
    if (field) { event.preventDefault(); field.focus(); field.select(); }
  } else if (event.key === "?") keys.showModal();
  else if (event.key === "j" || event.key === "k") {
    const rows = [...main.querySelectorAll("[data-row]")].filter((row) => row.offsetParent);
    const at = rows.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
    rows[Math.max(0, Math.min(at, rows.length - 1))]?.focus();
  }
});
document.querySelector("[data-help]")?.addEventListener("click", () => keys.showModal());

enliven();
if (body.dataset.live) listen(body.dataset.live);
if (main.querySelector(".reading")) refresh();
