import { Parley } from "./parley.js";

const $ = (id) => document.getElementById(id);
let call = null;
let joining = null; // cancels a join

const STATES = {
  ready: "Ready", connecting: "Connecting…", reconnecting: "The connection was lost. Reconnecting…", listening: "Listening",
  hearing: "Hearing you", closing: "Hearing you", thinking: "Thinking", speaking: "Speaking", paused: "Hearing you", held: "Waiting",
};
const REASONS = {
  callee_hangup: "You hung up.", agent_hangup: "The agent hung up.", inactivity: "The call ended after a long silence.",
  max_duration: "The call reached its maximum duration.", media_timeout: "The connection was lost for too long.",
};

/** Asks our server for a call. The response contains the token. */
async function createCall() {
  const response = await fetch("call", { method: "POST" });
  const body = await response.json().catch(() => null);
  if (!response.ok || !body) throw new Error("The call could not be created. Try again in a moment.");
  return body;
}

async function begin(join) {
  joining = new AbortController();
  fail(null);
  show("connecting");
  try {
    const joined = await join({
      signal: joining.signal, microphone: $("typed").checked ? false : (localStorage.microphone ?? true), speaker: localStorage.speaker,
      muted: $("muted").checked, playback: !$("silent").checked,
    });
    if (joined) attach(joined);
    else show("ready"); // the call of the former page has ended
  } catch (error) {
    show("ready", error.code === "aborted" ? "Ready" : "Not connected");
    if (error.code !== "aborted") fail(error);
  }
  joining = null;
}

function attach(joined) {
  call = joined;
  $("typed").checked = !call.hasMicrophone; // after a reload, the call is as before
  $("muted").checked = call.muted;
  $("silent").checked = !call.playback;
  call.on("state", ({ state }) => {
    if (state === "ended") return;
    if ($("state").textContent === STATES.reconnecting) fail(null);
    show(state);
  });
  call.on("transcript", addLine);
  call.on("level", ({ microphone, agent }) => { $("you").value = 3 * microphone; $("agent").value = 3 * agent; });
  call.on("devicechange", listDevices);
  call.on("error", fail);
  call.on("end", ({ reason }) => {
    call = null;
    $("interim").textContent = "";
    $("you").value = $("agent").value = 0;
    show("ready", REASONS[reason] ?? `The call has ended: ${reason}.`);
    $("start").focus();
  });
  Parley.devices().then(listDevices);
  show(call.state);
  (call.hasMicrophone ? $("stop") : $("text")).focus();
}

/** Shows a state, and the controls that work in it. */
function show(state, text = STATES[state]) {
  $("state").textContent = text;
  $("start").hidden = state !== "ready";
  $("stop").hidden = state === "ready";
  $("typed").disabled = state !== "ready";
  for (const id of ["text", "send", "microphone", "speaker"]) $(id).disabled = !call;
}

function fail(error) { $("error").textContent = error?.message ?? ""; }

function addLine({ role, text, final }) {
  const line = `${role === "agent" ? "Agent" : "You"}: ${text}`;
  $("interim").textContent = final ? "" : line;
  if (!final || !text) return;
  const item = document.createElement("li");
  item.className = role;
  item.textContent = line;
  $("lines").append(item);
  item.scrollIntoView({ block: "nearest" });
}

function listDevices({ microphones, speakers }) {
  for (const [id, devices, used] of [["microphone", microphones, call?.microphoneId], ["speaker", speakers, call?.speakerId]]) {
    const named = devices.filter((device) => device.label);
    if (named.length) $(id).replaceChildren(...named.map((device) => new Option(device.label, device.id, false, device.id === used)));
  }
}

/** Switches a device, and remembers it for the next call. */
async function choose(id, set) {
  try {
    await set($(id).value);
    localStorage[id] = $(id).value;
    fail(null);
  } catch (error) {
    fail(error);
    listDevices(await Parley.devices());
  }
}

$("start").addEventListener("click", () => {
  $("lines").replaceChildren();
  begin((options) => Parley.join(createCall, options));
});
$("stop").addEventListener("click", () => (call ? call.hangUp() : joining?.abort()));
$("muted").addEventListener("change", () => call?.mute($("muted").checked));
$("silent").addEventListener("change", () => call?.setPlayback(!$("silent").checked));
$("microphone").addEventListener("change", () => choose("microphone", (id) => call?.setMicrophone(id)));
$("speaker").addEventListener("change", () => choose("speaker", (id) => call?.setSpeaker(id)));
$("write").addEventListener("submit", (event) => {
  event.preventDefault();
  try {
    call.sendText($("text").value);
    $("text").value = "";
    fail(null);
  } catch (error) {
    fail(error);
  }
});
if (Parley.resumable()) begin((options) => Parley.resume(options));
