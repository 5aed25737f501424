// The page of /talk. Calls are made through parley.js.
import { Parley } from "../rtc/parley.js";

const $ = (id) => document.getElementById(id);
const STATES = {
  idle: "Ready", connecting: "Connecting", failed: "Not connected", reconnecting: "Reconnecting", ended: "Ended",
  listening: "Listening", hearing: "Hearing you", closing: "Hearing you", thinking: "Thinking", speaking: "Speaking", paused: "Hearing you", held: "Waiting",
};
const REASONS = {
  callee_hangup: "You hung up.", agent_hangup: "The agent hung up.", api_hangup: "The call was ended.", max_duration: "Maximum call duration reached.",
  media_timeout: "The connection was lost for too long.", inactivity: "The agent hung up after a long silence.",
  agent_error: "The agent failed. Try again shortly.", shutdown: "The service is restarting. Try again shortly.",
};
const PHASES = [
  ["jitter_ms", "network"], ["vad_ms", "silence"], ["asr_ms", "speech-to-text"], ["classifier_ms", "classifier"], ["eou_wait_ms", "endpointing wait"],
  ["llm_ms", "model"], ["tool_ms", "tools"], ["tts_ms", "voice"], ["out_ms", "playout"],
];
const SCALE = 1000; // ms of a full bar, at least
const TOKEN_TIMEOUT = 10_000; // ms

let call = null;
let joining = null; // cancels a join
let turns = [];
const fixed = $("typed").disabled; // the agents of this page recognize no speech
const calm = matchMedia("(prefers-reduced-motion: reduce)");

function element(name, className, text) {
  const e = document.createElement(name);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

function show(state) {
  $("state").dataset.state = state;
  $("state").textContent = STATES[state] ?? state;
}

let fault = null; // the error that shows

function fail(error) {
  fault = error;
  $("error").textContent = error?.message ?? "";
  $("error").hidden = !error;
}

function controls(on, busy = on) {
  $("talk").disabled = $("agent").disabled = busy;
  $("hangup").disabled = !busy;
  for (const b of [...$("keypad").children, $("text"), $("send"), $("dictate")]) b.disabled = !on;
  $("mute").disabled = !on || !speaks();
  if (!fixed) $("typed").disabled = busy;
}

/** Reports whether the caller speaks with a microphone. */
const speaks = () => !$("typed").checked;
const prompt = () => (speaks() ? "Start speaking." : "Type what you would say.");

// ---- the transcript

function line(role, text) {
  const li = element("li", role);
  li.append(element("span", "who", role === "agent" ? "Agent" : "You"), element("span", "", text));
  return li;
}

function transcript({ role, text, final }) {
  const box = $("scroll"), follows = box.scrollHeight - box.scrollTop - box.clientHeight < 60; // the visitor has not scrolled up
  $("empty").hidden = true;
  $("partials").querySelector(`.${role}`)?.remove();
  if (text) (final ? $("lines") : $("partials")).append(line(role, text));
  if (follows) box.scrollTop = box.scrollHeight;
}

// ---- the waterfall

function waterfall() {
  const longest = Math.max(SCALE, ...turns.map((t) => t.metrics.turn_ms ?? 0));
  $("no-turns").hidden = turns.length > 0;
  $("turns").hidden = turns.length === 0;
  $("turns").replaceChildren(...turns.map((t, i) => turn(t, longest, i === turns.length - 1)).reverse());
}

/** A row of a turn. Only the newest shows its phases. */
function turn(t, longest, newest) {
  const li = element("li"), row = element("details"), head = element("summary", "head"), bar = element("div", "bar"), list = element("dl", "phases");
  const name = t.turn === 0 ? "Greeting" : `Turn ${t.turn}`;
  const total = t.metrics.turn_ms;
  head.append(element("span", "", t.interrupted ? `${name}, interrupted` : name), element("b", "", total === undefined ? t.ending.replaceAll("_", " ") : `${Math.round(total)} ms`));
  bar.setAttribute("aria-hidden", "true");
  for (const [key, label] of PHASES) {
    const ms = t.metrics[key];
    if (!(ms >= 0.05)) continue; // would show as 0.0
    const part = element("span", key);
    part.style.width = `${(100 * ms) / longest}%`;
    bar.append(part);
    const item = element("div"), dot = element("i", key);
    dot.setAttribute("aria-hidden", "true");
    item.append(dot, element("dt", "", label), element("dd", "", ms < 10 ? ms.toFixed(1) : Math.round(ms)));
    list.append(item);
  }
  if (!bar.childElementCount) {
    li.append(element("div", "head"));
    li.firstElementChild.append(...head.childNodes);
    return li;
  }
  head.append(bar);
  row.open = newest;
  row.append(head, list);
  li.append(row);
  return li;
}

// ---- levels

let drawn = 0;
function levels({ microphone, agent }) {
  if (calm.matches && Date.now() - drawn < 500) return;
  drawn = Date.now();
  for (const [id, level] of [["level-you", call?.muted ? 0 : microphone], ["level-agent", agent]]) {
    let share = level > 0 ? Math.min(1, Math.max(0, 1 + (20 * Math.log10(level)) / 60)) : 0; // 60 dB
    if (calm.matches) share = Math.round(share * 5) / 5;
    $(id).firstElementChild.style.transform = `scaleX(${share})`;
    $(id).setAttribute("aria-valuenow", Math.round(share * 100));
  }
}

// ---- devices

async function devices() {
  const { microphones, speakers } = await Parley.devices();
  for (const [id, list, chosen] of [["microphone", microphones, call?.microphoneId], ["speaker", speakers, call?.speakerId]]) {
    const named = list.filter((d) => d.label);
    $(id).replaceChildren(...(named.length ? named : [{ id: "", label: "Default" }]).map((d) => new Option(d.label, d.id, false, d.id === chosen)));
    $(id).disabled = !call || named.length === 0;
  }
}

function choose(id, set) {
  $(id).addEventListener("change", () => call && set(call, $(id).value).then(() => fail(null), fail));
}

// ---- the call

async function token() {
  const path = new URL("token", import.meta.url);
  let answer;
  try {
    answer = await fetch(path, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ agent: $("agent").value }),
      signal: AbortSignal.timeout(TOKEN_TIMEOUT),
    });
  } catch {
    throw new Error("The service is unreachable. Check your connection and try again.");
  }
  const body = await answer.json().catch(() => null);
  if (!answer.ok || !body) throw new Error(body?.message ?? "Could not start the call. Try again shortly.");
  return body;
}

async function begin(join) {
  fail(null);
  joining = new AbortController();
  controls(false, true);
  show("connecting");
  $("status").textContent = "Connecting.";
  try {
    const joined = await join({ signal: joining.signal });
    if (joined) attach(joined);
    else idle("The previous call has ended.");
  } catch (e) {
    const aborted = e.code === "aborted";
    idle(aborted ? REASONS.callee_hangup : "");
    if (!aborted) refused(e);
    $("talk").focus();
  } finally {
    joining = null;
  }
}

function hangUp() {
  joining?.abort();
  call?.hangUp();
}

function refused(error) {
  fail(error);
  show("failed");
  offer("Try again");
}

/** Names the button that begins a call. It stands out unless the last attempt failed. */
function offer(name = "Talk") {
  $("talk").textContent = name;
  $("talk").classList.toggle("primary", name === "Talk");
}

function idle(status) {
  call = null;
  dictate(false);
  show("idle");
  offer();
  controls(false);
  mute(false);
  $("status").textContent = status;
  levels({ microphone: 0, agent: 0 });
}

function attach(joined) {
  call = joined;
  $("typed").checked = !call.hasMicrophone; // after a reload
  document.documentElement.dataset.call = call.id; // for support and tests
  controls(true);
  mute(call.muted); // restored after a reload
  show(call.state);
  $("status").textContent = call.muted ? "Connected. You are muted." : `Connected. ${prompt()}`;
  $(speaks() ? "mute" : "text").focus(); // the button that began the call is hidden now
  call.on("state", ({ state }) => {
    show(state);
    if (state === "speaking") spoke = Infinity;
    else if (spoke === Infinity) spoke = Date.now();
    if (state === "reconnecting") $("status").textContent = "The connection was lost. Reconnecting…";
    else if ($("status").textContent.startsWith("The connection")) {
      $("status").textContent = "Reconnected.";
      if (fault?.code !== "microphone_lost") fail(null);
    }
  });
  call.on("transcript", transcript);
  call.on("turn", (t) => { turns.push(t); waterfall(); });
  call.on("level", levels);
  call.on("error", fail);
  call.on("end", ({ reason }) => {
    idle(REASONS[reason] ?? `The call ended: ${reason.replaceAll("_", " ")}.`);
    show("ended");
    $("partials").replaceChildren();
    devices();
    $("talk").focus();
  });
  devices();
}

function talk() {
  turns = [];
  waterfall();
  $("lines").replaceChildren();
  $("partials").replaceChildren();
  $("empty").hidden = false;
  begin((options) => Parley.join(token, { ...options, microphone: speaks() })); // the token may expire while the microphone prompt is open
}

function mute(on) {
  call?.mute(on);
  $("mute").setAttribute("aria-pressed", String(on));
  if (call) $("status").textContent = on ? "You are muted." : "Your microphone is on.";
}

function press(key) {
  try {
    call?.press(key);
  } catch (e) {
    fail(e);
  }
}

function write(text) {
  try {
    call?.sendText(text);
    fail(null);
    return true;
  } catch (e) {
    fail(e);
    return false;
  }
}

// ---- dictation: the browser recognizes the caller's speech

const Recognition = globalThis.SpeechRecognition ?? globalThis.webkitSpeechRecognition;
const ECHO = 1000; // ms after the agent's speech in which recognized words may be its echo
let recognition = null;
let spoke = 0; // when the agent stopped speaking; Infinity while it speaks
const isEcho = () => Date.now() - spoke < ECHO;

function dictate(on) {
  $("dictate").setAttribute("aria-pressed", String(on));
  if (on === Boolean(recognition)) return;
  if (!on) {
    const old = recognition;
    recognition = null;
    old.abort();
    return;
  }
  const r = (recognition = new Recognition());
  Object.assign(r, { lang: navigator.language, continuous: true, interimResults: true });
  const echoes = new Set(); // results that began during the agent's speech
  r.onresult = ({ results, resultIndex }) => {
    for (let i = resultIndex; i < results.length; i++) {
      const text = results[i][0].transcript.trim();
      if (isEcho()) echoes.add(i);
      if (!text || echoes.has(i)) continue;
      if (results[i].isFinal) write(text);
      transcript({ role: "caller", text: results[i].isFinal ? "" : text, final: false });
    }
  };
  r.onerror = ({ error }) => {
    if (error === "no-speech" || error === "aborted") return;
    fail(new Error(error === "not-allowed" ? "Microphone access is blocked. Allow it in the browser's settings for this page, then try again." : "The browser's speech recognition is not available. Type instead."));
    dictate(false);
  };
  r.onend = () => {
    echoes.clear(); // the numbers of results start again
    if (recognition === r) setTimeout(() => recognition === r && r.start(), 250);
  };
  r.start();
}

$("dictate").hidden = $("dictation").hidden = !(fixed && Recognition);
$("dictate").addEventListener("click", () => dictate(!recognition));
$("write").addEventListener("submit", (e) => {
  e.preventDefault();
  if (write($("text").value)) $("text").value = "";
});
$("typed").addEventListener("change", () => {
  fail(null);
  idle(speaks() ? "Press Talk and allow the microphone." : "Press Talk, then type what you would say.");
});
$("talk").addEventListener("click", talk);
$("keypad").addEventListener("click", (e) => { if (e.target.closest("button")) press(e.target.textContent); });
$("mute").addEventListener("click", () => mute(!call?.muted));
$("hangup").addEventListener("click", hangUp);
choose("microphone", (c, id) => c.setMicrophone(id));
choose("speaker", (c, id) => c.setSpeaker(id));
Parley.watchDevices(devices);
addEventListener("keydown", (e) => {
  if (e.repeat || e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = e.target.closest?.("select, summary, input, textarea");
  if (e.key === "Escape" && !typing) hangUp();
  else if (!call) return;
  else if ((e.key === "m" || e.key === "M") && !typing) mute(!call.muted);
  else if (/^[0-9*#]$/.test(e.key) && !typing) press(e.key);
  else if (e.key === " " && !typing && !e.target.closest?.("button, .scroll, .turns")) {
    e.preventDefault();
    mute(!call.muted);
  }
});

if ($("notice")) $("notice").open = matchMedia("(min-width: 46rem)").matches; // on phones it would displace the controls
waterfall();
if (Parley.resumable()) begin(Parley.resume);
