// The wearer's memory: days, profile, search, what may be kept, numbers. Text from the memory is only ever text.
import { api, el } from "/page/main.js";

const $ = (id) => document.getElementById(id);
const when = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const dayName = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
const clock = (time) => when.format(new Date(time));
const KINDS = {
  turn: "turn", event: "event", summary: "summary", profile: "profile line", context: "scene",
  index_keys: "index entry", turns: "turn", events: "event", summaries: "summary", contexts: "scene",
};

const VIEWS = { days: ["Days", days], profile: ["About you", profile], search: ["Search", search],
  keeping: ["Forget and keep", keeping], numbers: ["Numbers", numbers] };

// Tabs; `now` is in the page itself and only where a companion lives.
export function openTabs(live) {
  const tabs = $("tabs");
  tabs.replaceChildren();
  tabs.hidden = false;
  const names = [...(live ? [["now", "Now"]] : []), ...Object.entries(VIEWS).map(([id, [name]]) => [id, name])];
  for (const [id, name] of names) {
    const tab = el("button", name);
    tab.dataset.view = id;
    tab.addEventListener("click", () => show(id, true));
    tabs.append(tab);
  }
  show(names[0][0]);
}

async function show(id, moveFocus = false) {
  for (const tab of $("tabs").children) {
    if (tab.dataset.view === id) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  $("now").hidden = id !== "now";
  const views = $("views");
  views.replaceChildren();
  if (id === "now") return;
  const section = el("section", "", { className: "card view", id: `view-${id}` });
  const title = el("h2", VIEWS[id][0], { tabIndex: -1 });
  section.append(title);
  views.append(section);
  if (moveFocus) title.focus();
  await tried(section, async () => {
    if ((await api("review/lock")).locked) unlock(section, id);
    else await VIEWS[id][1](section);
  });
}

function unlock(section, id) {
  const form = el("form");
  const field = el("input", "", { type: "password", id: "passphrase", required: true, autocomplete: "off" });
  form.append(el("label", "The memory's passphrase", { htmlFor: "passphrase" }), field, el("button", "Open", { className: "primary" }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    tried(section, async () => {
      await api("review/unlock", { passphrase: field.value });
      await show(id, true);
    });
  });
  section.append(form);
}

// Does `work`; what goes wrong is told in the section.
async function tried(section, work) {
  section.querySelector(":scope > .problem")?.remove();
  try {
    return await work();
  } catch (error) {
    section.append(el("p", error.message, { className: "problem", role: "alert" }));
  }
}

function button(name, work, className = "") {
  const made = el("button", name, { className });
  made.addEventListener("click", work);
  return made;
}

const many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

function counted(gone) {
  const parts = Object.entries(gone).filter(([, n]) => n).map(([kind, n]) => many(n, KINDS[kind] ?? kind));
  return parts.join(", ") || "nothing";
}

// Asks before anything is forgotten, says what goes with it, and offers to undo.
async function forget(wanted, what, after) {
  const plan = await api("review/foresee", wanted);
  const told = [`This goes: ${counted(plan.gone)}.`];
  if (Object.values(plan.remade).some(Boolean)) told.push(`Made again without it: ${counted(plan.remade)}.`);
  told.push("It can be undone for an hour, then it is gone for good.");
  ask(`Forget ${what}?`, told, "Forget", async () => {
    const receipt = await api("review/forget", wanted);
    toast(`Forgotten: ${counted(receipt.gone)}.` + (receipt.copies.length ? ` Backups that still hold it: ${receipt.copies.join(", ")}.` : ""), after);
    await after();
  });
}

function ask(title, told, yes, work) {
  const dialog = el("dialog");
  dialog.setAttribute("aria-labelledby", "ask-title");
  dialog.append(el("h2", title, { id: "ask-title" }), ...told.map((text, i) => el("p", text, { className: i ? "quiet" : "" })));
  const row = el("div", "", { className: "controls" });
  row.append(
    button(yes, async () => {
      dialog.close();
      try {
        await work();
      } catch (error) {
        toast(error.message);
      }
    }, "danger"),
    button("Keep", () => dialog.close()),
  );
  dialog.append(row);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function toast(text, after) {
  $("toast")?.remove();
  const made = el("div", "", { id: "toast", className: "toast card" });
  made.setAttribute("role", "status");
  made.append(el("p", text));
  if (after) {
    made.append(button("Undo", async () => {
      try {
        const { back } = await api("review/undo", {});
        toast(back ? `Back again: ${counted(back)}.` : "There is nothing to undo any more.");
        await after();
      } catch (error) {
        toast(error.message);
      }
    }));
  }
  made.append(button("Close", () => made.remove()));
  document.body.append(made);
}

// Words that can be corrected in place.
function correctable(entry, text, after) {
  const box = el("span", "", { className: "words" });
  const shown = el("span", text);
  box.append(shown, " ", button("Correct", () => {
    const field = el("input", "", { value: text, maxLength: 2000, className: "wide" });
    field.setAttribute("aria-label", "The right words");
    const form = el("form", "", { className: "inline" });
    form.append(field, el("button", "Save", { className: "primary" }), button("Cancel", () => box.replaceWith(correctable(entry, text, after)), ""));
    form.lastChild.type = "button";
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        await api("review/edit", { id: entry, text: field.value });
        await after();
      } catch (error) {
        toast(error.message);
      }
    });
    box.replaceChildren(form);
    field.focus();
  }, "small"));
  return box;
}

async function days(section) {
  const list = el("div");
  section.append(list);
  let before = "";
  const more = button("Earlier days", load);
  section.append(more);
  async function load() {
    const found = await api(`review/days${before ? `?before=${before}` : ""}`);
    if (!found.days.length && !before) list.append(el("p", "Nothing is remembered yet.", { className: "quiet" }));
    for (const day of found.days) list.append(oneDay(day));
    before = found.days.at(-1)?.date ?? before;
    more.hidden = !found.more;
  }
  await load();
}

const held = (turns, events) => `${many(turns, "turn")}, ${many(events, "event")}`;

// A day on a map of time and place: a row a place, a bar an event.
function oneDay(day) {
  const made = el("details", "", { className: "day" });
  const head = el("summary");
  const count = el("span", held(day.turns, day.events.length));
  head.append(el("strong", dayName.format(new Date(`${day.date}T12:00`))), " ", count);
  made.append(head);
  const body = el("div");
  made.append(body);
  made.addEventListener("toggle", () => {
    if (!made.open) return;
    made.querySelector(".map")?.remove();
    if (day.events.length) head.after(dayMap(day.events, made.clientWidth)); // its width is known once it is open
    tried(body, () => fill(body, day.date, count));
  });
  return made;
}

function svg(name, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

// A plot's width in its own units, which are the screen's: its letters are as large as they say.
const drawn = (room) => Math.min(800, Math.max(260, room));

function dayMap(events, room) {
  const places = [...new Set(events.map((e) => e.location || "somewhere"))];
  const hours = (time) => { const t = new Date(time); return t.getHours() + t.getMinutes() / 60; };
  const wide = drawn(room), left = Math.min(110, wide / 3), width = wide - left - 24, row = 26, height = places.length * row + 24;
  const x = (h) => left + (h / 24) * width;
  const map = svg("svg", { viewBox: `0 0 ${wide} ${height}`, class: "map", role: "img" });
  map.append(svg("title", {}, `Places of the day: ${events.map((e) => `${e.location || "somewhere"}, ${fromTo(e)}${doing(e)}`).join("; ")}`));
  for (let h = 0; h <= 24; h += 6) {
    map.append(svg("line", { x1: x(h), x2: x(h), y1: 0, y2: height - 20, class: "grid" }));
    map.append(svg("text", { x: x(h), y: height - 5, class: "tick", "text-anchor": "middle" }, `${h}:00`));
  }
  places.forEach((place, i) => {
    map.append(svg("text", { x: left - 8, y: i * row + 17, class: "tick", "text-anchor": "end" }, place.slice(0, left < 110 ? 12 : 16)));
    for (const event of events.filter((e) => (e.location || "somewhere") === place)) {
      const from = x(hours(event.start));
      map.append(svg("rect", { x: from, y: i * row + 4, width: Math.max(4, x(hours(event.end)) - from), height: row - 8, rx: 4, class: "bar" }));
    }
  });
  return map;
}

const RULE_MADE = /^\d\d:\d\d-\d\d:\d\d /; // such a summary begins with time and place itself
const fromTo = ({ start, end }) => (clock(start) === clock(end) ? clock(start) : `${clock(start)}–${clock(end)}`);
const doing = ({ activity }) => (activity && activity !== "unknown" ? `, ${activity}` : "");

async function fill(body, date, count) {
  const again = () => fill(body, date, count);
  const day = await api(`review/day?date=${date}`);
  const turns = day.conversations.reduce((sum, talk) => sum + talk.turns.length, 0);
  if (!day.more) count.textContent = held(turns, day.events.length); // less than there was, once some is forgotten
  body.replaceChildren();
  for (const event of day.events) {
    const item = el("p", "", { className: "event" });
    if (!RULE_MADE.test(event.summary)) item.append(el("strong", `${fromTo(event)} ${event.location || "somewhere"}${doing(event)}: `));
    item.append(correctable(event.id, event.summary, again), " ", button("Forget", () => forget({ ids: [event.id] }, "this event", again), "small danger"));
    body.append(item);
  }
  for (const talk of day.conversations) {
    const box = el("article", "", { className: "talked" });
    const first = talk.turns[0];
    box.append(el("h3", `Conversation at ${clock(first.time)}${first.location ? `, ${first.location}` : ""}`));
    if (talk.summary) box.append(el("p", talk.summary.text, { className: "quiet" }));
    for (const turn of talk.turns) {
      const item = el("div", "", { className: "turn" });
      const said = el("p");
      said.append(el("span", `${clock(turn.time)} ${turn.speaker === "wearer" ? "You" : turn.speaker.replace("other:", "")}: `, { className: "quiet" }), correctable(turn.id, turn.heard, again));
      item.append(said);
      if (turn.reply) item.append(el("p", `OS-1: ${turn.reply}`));
      if (turn.scene) item.append(el("p", `In view: ${turn.scene}`, { className: "quiet" }));
      for (const used of turn.used ?? []) item.append(el("p", `Remembered for it: ${used.text} (${used.reason})`, { className: "quiet" }));
      item.append(button("Forget", () => forget({ ids: [turn.id] }, "this turn", again), "small danger"));
      box.append(item);
    }
    box.append(button("Forget this conversation", () => forget({ ids: talk.turns.map((t) => t.id) }, "this conversation", again), "danger"));
    body.append(box);
  }
  if (day.more) body.append(el("p", "There is more on this day than is shown here; `os1 memory list` has all of it.", { className: "quiet" }));
  if (!day.events.length && !day.conversations.length) body.append(el("p", "Nothing is left of this day.", { className: "quiet" }));
}

async function profile(section) {
  const again = async () => { section.replaceChildren(section.firstChild); await profile(section); };
  const { entries } = await api("review/profile");
  if (!entries.length) section.append(el("p", "Nothing is known of you yet.", { className: "quiet" }));
  for (const kind of ["health", "preference", "habit", "social background", "personality"]) {
    const some = entries.filter((entry) => entry.kind === kind);
    if (!some.length) continue;
    section.append(el("h3", kind[0].toUpperCase() + kind.slice(1)));
    for (const entry of some) section.append(line(entry, again));
  }
}

function line(entry, again) {
  const box = el("div", "", { className: "turn" });
  const sure = el("meter", "", { min: 0, max: 1, value: entry.confidence });
  const percent = Math.round(100 * entry.confidence);
  sure.setAttribute("aria-label", `Confidence ${percent} percent`);
  const words = el("p");
  words.append(correctable(entry.id, entry.text, again), " ", sure, el("small", ` ${percent} % sure`, { className: "quiet", ariaHidden: "true" }));
  box.append(words);
  const from = el("details");
  from.append(el("summary", `From ${many(entry.sources.length, "source")}${entry.made_by === "wearer" ? ", corrected by you" : ""}`));
  for (const source of entry.sources) from.append(el("p", `${dayName.format(new Date(source.time))}: “${source.quote}”`, { className: "quiet" }));
  for (const before of entry.before) from.append(el("p", `Before${before.until ? ` (until ${dayName.format(new Date(before.until))})` : ""}: ${before.text}`, { className: "quiet" }));
  box.append(from, button("Forget", () => forget({ ids: [entry.id] }, `“${entry.text}”`, again), "small danger"));
  return box;
}

async function search(section) {
  const form = el("form", "", { className: "inline", role: "search" });
  const field = el("input", "", { type: "search", id: "query", required: true, maxLength: 500, className: "wide" });
  form.append(el("label", "What do you look for?", { htmlFor: "query" }), field, el("button", "Search", { className: "primary" }));
  const list = el("div", "", { role: "status" });
  section.append(form, list);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    find();
  });
  const find = () => tried(section, async () => {
    const { found } = await api(`review/search?q=${encodeURIComponent(field.value)}`);
    list.replaceChildren(el("p", found.length ? `${found.length} found` : "Nothing found.", { className: "quiet" }));
    for (const hit of found) {
      const box = el("div", "", { className: "turn" });
      box.append(el("p", hit.text), el("p", `${KINDS[hit.kind]}, ${dayName.format(new Date(hit.time))}${hit.location ? `, ${hit.location}` : ""}; ${hit.reason}`, { className: "quiet" }));
      box.append(button("Forget", () => forget({ ids: [hit.id] }, "this", find), "small danger"));
      list.append(box);
    }
    if (found.length) list.append(button(`Forget everything about “${field.value}”`, () => forget({ about: field.value }, `everything about “${field.value}”`, find), "danger"));
  });
}

async function keeping(section) {
  const again = async () => { section.replaceChildren(section.firstChild); await keeping(section); };
  const form = el("form", "", { className: "inline" });
  const span = {};
  for (const [name, words] of [["since", "From"], ["until", "To"]]) {
    span[name] = el("input", "", { type: "datetime-local", id: `span-${name}`, required: true });
    form.append(el("label", words, { htmlFor: `span-${name}` }), span[name]);
  }
  form.append(el("button", "Forget this span", { className: "danger" }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    tried(section, () => forget({ since: span.since.value, until: span.until.value }, "this span", again));
  });
  section.append(el("h3", "Forget a span of time"), form);

  const { undoable } = await api("review/undoable");
  section.append(el("h3", "Forgotten, and can still be undone"));
  if (!undoable.length) section.append(el("p", "Nothing.", { className: "quiet" }));
  undoable.forEach((entry, i) => {
    const box = el("p", `${clock(entry.time)}: ${counted(entry.gone)}; until ${clock(entry.until)} `);
    if (i === 0) box.append(button("Undo", () => tried(section, async () => { await api("review/undo", {}); await again(); })));
    section.append(box);
  });
  if (undoable.length) section.append(button("Make it final now", () => ask("Make it final?", ["What was forgotten is taken out of the file now.", "Nothing of it can be undone any more."], "Make it final", async () => { await api("review/purge", {}); await again(); }), "danger"));

  section.append(el("h3", "Take it along"), el("p", "All that is remembered as one text file. It is not encrypted.", { className: "quiet" }));
  section.append(button("Export", () => tried(section, async () => {
    const answer = await fetch("/api/review/export", { method: "POST" });
    if (!answer.ok) throw new Error((await answer.json()).error);
    const link = el("a", "", { href: URL.createObjectURL(await answer.blob()), download: "os1-memory.jsonl" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  })));
  await choices(section, again);
  section.append(el("h3", "This browser"), button("Unpair it", async () => { await api("unpair", {}); location.reload(); }));
}

const AGES = [["", "for ever"], ["30", "30 days"], ["90", "90 days"], ["365", "one year"]];
const KEPT = [["keep_turns_days", "What was said"], ["keep_contexts_days", "What was seen"], ["keep_events_days", "Daily events"], ["keep_summaries_days", "Summaries"]];
const SHARED = [["share_text", "The server may be asked with what was said"], ["share_pictures", "The server may be shown pictures, with faces blurred"]];

async function choices(section, again) {
  const now = await api("review/choices");
  const form = el("form");
  form.append(el("h3", "How long it is kept"));
  for (const [name, words] of KEPT) {
    const field = el("select", "", { id: name });
    const known = AGES.some(([value]) => value === String(now[name] ?? ""));
    for (const [value, label] of [...AGES, ...(known ? [] : [[String(now[name]), `${now[name]} days`]])]) field.append(el("option", label, { value }));
    field.value = String(now[name] ?? "");
    const row = el("p");
    row.append(el("label", words, { htmlFor: name }), field);
    form.append(row);
  }
  form.append(el("h3", "Who may see it"));
  for (const [name, words] of SHARED) {
    const field = el("input", "", { type: "checkbox", id: name, checked: now[name] });
    const row = el("p", "", { className: "check" });
    row.append(field, el("label", words, { htmlFor: name }));
    form.append(row);
  }
  form.append(el("button", "Save", { className: "primary" }));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    tried(section, async () => {
      const wanted = {};
      for (const [name] of KEPT) wanted[name] = $(name).value ? Number($(name).value) : null;
      for (const [name] of SHARED) wanted[name] = $(name).checked;
      const save = async () => {
        const { gone } = await api("review/choices", wanted);
        const some = Object.values(gone).some(Boolean);
        toast(some ? `Saved. Forgotten: ${counted(gone)}.` : "Saved.", some ? again : undefined);
        await again();
      };
      const { gone } = await api("review/choices/foresee", wanted);
      if (!Object.values(gone).some(Boolean)) return save();
      ask("Keep it for less long?", [`This goes: ${counted(gone)}.`, "It can be undone for an hour, then it is gone for good. From now on all of this kind goes when it is as old, without a question."], "Forget", save);
    });
  });
  section.append(form);
}

const ROUTES = { local: "on the device", cloud: "by the server", rule: "by a rule", fallback: "with a set phrase" };

async function numbers(section) {
  const { turns, routes } = await api("review/numbers");
  const spoken = turns.filter((turn) => turn.seconds != null);
  if (!spoken.length) {
    section.append(el("p", "No turn has been answered yet.", { className: "quiet" }));
    return;
  }
  const sorted = spoken.map((turn) => turn.seconds).sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))].toFixed(2);
  section.append(el("p", `${spoken.length} ${spoken.length === 1 ? "reply" : "replies"}; from your last word to the first of the answer: half within ${at(0.5)} s, nineteen of twenty within ${at(0.95)} s.`));
  section.append(el("h3", "Seconds to each answer, oldest first"), waits(spoken, section.clientWidth - 40), legend());
  section.append(el("h3", "Where it was answered"));
  const all = Object.values(routes).reduce((a, b) => a + b, 0);
  const table = el("table");
  for (const [route, count] of Object.entries(routes)) {
    const row = el("tr");
    const share = el("meter", "", { min: 0, max: all, value: count });
    share.setAttribute("aria-label", `${count} of ${all}`);
    const cell = el("td");
    cell.append(share);
    row.append(el("th", ROUTES[route] ?? route, { scope: "row" }), el("td", String(count)), cell);
    table.append(row);
  }
  section.append(table);
}

function legend() {
  const made = el("p", "", { className: "legend quiet" });
  made.append(el("span", "on the device", { className: "near" }), el("span", "by the server", { className: "far" }), el("span", "slower than the plot is high", { className: "over" }));
  return made;
}

// Most answers share the height; the few slowest stand hollow at the top.
function waits(turns, room) {
  const some = turns.slice(-300);
  const sorted = some.map((turn) => turn.seconds).sort((a, b) => a - b);
  const most = Math.max(2, 1.25 * sorted[Math.floor(0.95 * (sorted.length - 1))]);
  const wide = drawn(room), left = 46;
  const plot = svg("svg", { viewBox: `0 0 ${wide} 180`, class: "map", role: "img" });
  plot.append(svg("title", {}, `Seconds to the last ${some.length} answers, the slowest ${sorted.at(-1).toFixed(1)} seconds`));
  for (let s = 0; s <= most; s += Math.ceil(most / 4)) {
    const y = 160 - (s / most) * 140;
    plot.append(svg("line", { x1: left - 6, x2: wide - 5, y1: y, y2: y, class: "grid" }), svg("text", { x: left - 12, y: y + 4, class: "tick", "text-anchor": "end" }, `${s} s`));
  }
  some.forEach((turn, i) => {
    const x = left + (i / Math.max(1, some.length - 1)) * (wide - left - 12);
    const kind = `dot ${turn.route === "cloud" ? "far" : "near"}${turn.seconds > most ? " over" : ""}`;
    const dot = svg("circle", { cx: x, cy: 160 - Math.min(1.06, turn.seconds / most) * 140, r: 3.5, class: kind });
    dot.append(svg("title", {}, `${turn.seconds.toFixed(2)} s`));
    plot.append(dot);
  });
  return plot;
}
