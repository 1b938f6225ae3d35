// Pairing, the views, and the one that shows what happens now.
import { Glasses } from "/page/glasses.js";
import { openTabs } from "/page/review.js";

const $ = (id) => document.getElementById(id);
const LINES = 100;

export const WORDS = {
  listening: "Listening", hearing: "Hearing you", thinking: "Thinking", speaking: "Speaking", muted: "Muted",
  off: "Not started",
};

export async function api(path, body, method) {
  const options = body === undefined ? { method: method ?? "GET" } : {
    method: method ?? "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  const answer = await fetch(`/api/${path}`, options);
  const found = await answer.json().catch(() => ({}));
  if (answer.status === 401) showPairing();
  if (!answer.ok) throw new Error(found.error || `The companion answers ${answer.status}.`);
  return found;
}

// An element with text; text is never markup.
export function el(name, text = "", props = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  return Object.assign(made, props);
}

function showPairing() {
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== "pair";
  $("tabs").hidden = true;
  $("code").focus();
}

async function pair(code) {
  await api("pair", { code });
  history.replaceState(null, "", location.pathname);
  $("pair").hidden = true;
  await enter();
}

async function enter() {
  const found = await api("state");
  $("link").textContent = "Paired";
  emptied();
  found.turns?.forEach(turn);
  found.latest?.forEach((latest) => told({ detail: latest }));
  openTabs(found.live);
}

$("pair-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  $("pair-problem").textContent = "";
  try {
    await pair($("code").value);
    $("main").focus();
  } catch (error) {
    $("pair-problem").textContent = error.message;
    $("code").select();
  }
});

let glasses = null;
let now = "off";
let away = false;

function state(name) {
  now = name;
  $("orb").dataset.state = name;
  const words = WORDS[name] + (away && name !== "off" ? ", looking away" : "");
  if ($("state").textContent !== words) $("state").textContent = words;
  $("mute").textContent = name === "muted" ? "Unmute" : "Mute";
  $("mute").classList.toggle("on", name === "muted");
}

function line(who, text, note = "") {
  const item = el("li", "", { className: who });
  const words = el("span", text);
  item.append(el("span", who === "me" ? "You: " : "OS-1: ", { className: "visually-hidden" }), words);
  if (note) item.append(el("small", note));
  $("lines").append(item);
  $("no-lines").hidden = true;
  while ($("lines").children.length > LINES) $("lines").firstChild.remove();
  $("lines").scrollTop = $("lines").scrollHeight;
  return words;
}

function emptied() {
  $("saying").textContent = "";
  answering = null;
  $("lines").replaceChildren();
  $("no-lines").hidden = false;
}

// What was said and seen before may speak of what the wearer had forgotten, or put right.
function forgotten() {
  emptied();
  $("partial").textContent = "";
  scene("Nothing yet.");
}

const ROUTES = { local: "on the device", cloud: "from the server", rule: "by a rule", fallback: "with a set phrase" };

let answering = null; // the turn whose words stand among the lines already, while its reply sounds

function heardLine(event) {
  $("partial").textContent = "";
  if (!event.heard) return;
  if (answering?.id === event.turn_id) answering.words.textContent = event.heard; // the wearer spoke on
  else answering = { id: event.turn_id, words: line("me", event.heard) };
}

// Captions go with the sound; the line that stays comes at its end, with what was really heard of it.
function saying(event) {
  heardLine(event);
  $("saying").textContent = event.reply;
}

function turn(event) {
  heardLine(event);
  answering = null;
  $("saying").textContent = "";
  const took = event.voice_to_voice_s == null ? "" : `, ${event.voice_to_voice_s.toFixed(1)} s`;
  const cut = event.interrupted ? ", interrupted" : "";
  if (event.reply) line("it", event.reply, `${ROUTES[event.route] ?? event.route}${took}${cut}`);
  if (event.failed) line("it", "That went wrong.", event.failed);
}

let seen = $("scene").textContent;

function scene(words) {
  seen = words;
  $("scene").textContent = away ? "It looks away." : seen;
}

function looking(isAway) {
  away = isAway;
  state(now);
  scene(away ? "Nothing yet." : seen); // what it saw before is old once it looks again
  $("capture").setAttribute("aria-pressed", String(away));
  $("preview").hidden = away || !glasses?.camera;
  if (glasses) glasses.seeing = !away;
  glasses?.camera?.getVideoTracks().forEach((track) => { track.enabled = !away; });
}

const LINKS = {
  none: "On the device alone", unknown: "Server: not asked yet", off: "Offline: on the device",
  good: "Online", metered: "Online, costs by the byte", poor: "Online, poor link",
};

function link(event) {
  $("route").hidden = false;
  $("route").dataset.quality = event.quality;
  $("route").textContent = LINKS[event.quality] + (event.rtt_ms == null ? "" : `, ${event.rtt_ms} ms`);
  $("route").title = event.why;
}

const STEPS = { saving: "saving power", low: "low power", critical: "critical" };

function power(event) {
  const slow = STEPS[event.step];
  const level = event.battery == null ? "" : `Battery ${event.battery} %${event.charging ? ", charging" : ""}`;
  $("battery").textContent = [level, slow && `${slow}: ${event.reason}`].filter(Boolean).join("; ");
  $("battery").hidden = !$("battery").textContent;
  $("battery").dataset.step = event.step;
}

function told({ detail: event }) {
  if (event.kind === "snapshot") {
    emptied();
    event.turns.forEach(turn);
    state(event.state);
    event.latest.forEach((latest) => told({ detail: latest }));
  } else if (event.kind === "looking") looking(event.away);
  else if (event.kind === "link") link(event);
  else if (event.kind === "power") power(event);
  else if (event.kind === "state") state(event.state);
  else if (event.kind === "partial") $("partial").textContent = event.text;
  else if (event.kind === "saying") saying(event);
  else if (event.kind === "turn") turn(event);
  else if (event.kind === "forgot") forgotten();
  else if (event.kind === "scene") scene(event.sentence || "It can make nothing out.");
  else if (event.kind === "taken") {
    takenOff();
    $("now-problem").textContent = "Another page is the glasses now.";
  }
}

function takenOff() {
  glasses?.stop();
  glasses = null;
  $("preview").hidden = true;
  state("off");
  for (const id of ["mute", "capture", "stop", "gaze"]) $(id).hidden = true;
  $("start").hidden = false;
  $("start").disabled = false;
  $("level").value = 0;
}

const PROBLEMS = {
  NotAllowedError: "The browser was not allowed to use the microphone. Allow it in the address bar, then try again.",
  NotFoundError: "This device has no microphone.",
  NotReadableError: "Another program holds the microphone.",
};

$("start").addEventListener("click", async () => {
  $("now-problem").textContent = "";
  $("start").disabled = true;
  if (!navigator.mediaDevices) {
    $("now-problem").textContent = "Browsers give the microphone to https pages and localhost only.";
    return;
  }
  glasses = new Glasses($("video"));
  glasses.addEventListener("told", told);
  glasses.addEventListener("link", ({ detail }) => {
    $("link").textContent = detail === "connected" ? "Connected" : "Connection lost; trying again";
    if (detail !== "connected") state("off");
  });
  glasses.addEventListener("level", ({ detail }) => {
    $("level").value = Math.min(1, detail * 4);
    $("orb").style.setProperty("--level", Math.min(1, detail * 6).toFixed(2));
  });
  glasses.addEventListener("no-camera", () => scene("There is no camera; it hears only."));
  try {
    await glasses.start();
    $("start").hidden = true;
    for (const id of ["mute", "capture", "stop"]) $(id).hidden = false;
    $("capture").hidden = !glasses.camera;
    $("preview").hidden = away || !glasses.camera;
  } catch (error) {
    takenOff();
    $("now-problem").textContent = PROBLEMS[error.name] ?? error.message;
  }
});

$("stop").addEventListener("click", () => {
  takenOff();
  $("link").textContent = "Paired";
  $("start").focus();
});

$("mute").addEventListener("click", () => {
  glasses?.send({ kind: now === "muted" ? "unmute" : "mute" });
});

$("capture").addEventListener("click", () => {
  if (!glasses) return;
  glasses.send({ kind: away ? "look_back" : "look_away" });
  // Dark at once, whatever the link does; light again when the companion says so.
  if (!away) looking(true);
});

// Tap to look: where in the picture the wearer's eyes are.
const gaze = { x: 0.5, y: 0.5 };
function look(x, y) {
  gaze.x = Math.min(1, Math.max(0, x));
  gaze.y = Math.min(1, Math.max(0, y));
  $("gaze").hidden = false;
  $("gaze").style.left = `${100 * gaze.x}%`;
  $("gaze").style.top = `${100 * gaze.y}%`;
  glasses?.send({ kind: "gaze", x: gaze.x, y: gaze.y });
}
$("video").addEventListener("click", (event) => {
  const box = $("video").getBoundingClientRect();
  if (glasses?.camera) look((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
});
$("gaze").addEventListener("keydown", (event) => {
  const step = { ArrowLeft: [-0.05, 0], ArrowRight: [0.05, 0], ArrowUp: [0, -0.05], ArrowDown: [0, 0.05] }[event.key];
  if (!step) return;
  event.preventDefault();
  look(gaze.x + step[0], gaze.y + step[1]);
});

async function begin() {
  const code = location.hash.slice(1);
  try {
    if (code) await pair(code);
    else await enter();
  } catch {
    showPairing();
    $("pair").hidden = false;
  }
  performance.mark("usable"); // read by whoever measures the page
}
begin();
