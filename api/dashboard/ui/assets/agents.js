"use strict";
(() => {
  const editor = document.querySelector("[data-editor]");
  if (!editor) return;
  const field = (name) => editor.elements[name];

  // Size of the prompt and its variables, by the rules of the server.
  const prompt = field("prompt"), list = editor.querySelector("[data-variables]");
  const defaults = () => new Map(field("variables").value.split("\n").filter((l) => l.includes("="))
    .map((l) => [l.slice(0, l.indexOf("=")).trim(), l.slice(l.indexOf("=") + 1).trim()]));
  const row = (name, source, state, mark) => {
    const tr = document.createElement("tr"), th = document.createElement("th"), td = document.createElement("td"), code = document.createElement("code");
    th.scope = "row";
    code.textContent = name;
    th.append(code);
    td.append(source);
    if (state) {
      const s = document.createElement("span");
      s.className = `state ${mark}`;
      s.textContent = state;
      td.append(" ", s);
    }
    tr.append(th, td);
    return tr;
  };
  const update = () => {
    const number = (n) => n.toLocaleString("en-US"), text = prompt.value;
    const characters = [...text].length, tokens = Math.ceil(new TextEncoder().encode(text).length / 4);
    editor.querySelector("[data-size]").textContent = `${number(characters)} characters, about ${number(tokens)} tokens. This is an estimate: 4 bytes count as a token.`;
    const known = defaults(), used = new Set(), rows = [];
    for (const [all, inner] of (field("greeting").value + prompt.value + field("voicemail_message").value).matchAll(/\{\{([^{}]*)\}\}/g)) {
      const name = inner.trim();
      if (used.has(name)) continue;
      used.add(name);
      const value = known.get(name);
      if (!/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(name)) rows.push(row(all, "use letters, digits and _", "not a valid placeholder", "bad"));
      else if (value !== undefined) rows.push(row(name, `${name === "name" ? "name of the contact" : "the call"}, else the default “${value}”`));
      else rows.push(row(name, `${name === "name" ? "name of the contact" : "the call"}; no default`, "each call must set it", "busy"));
    }
    for (const name of [...known.keys()].sort()) if (!used.has(name)) rows.push(row(name, `default “${known.get(name)}”`, "not used", ""));
    list.replaceChildren(...rows);
    list.closest("table").hidden = rows.length === 0;
  };
  editor.addEventListener("input", (e) => { if (e.target.matches("textarea")) update(); });

  // Names of voices belong to the chosen provider.
  const voice = field("speech.tts.voice"), provider = field("speech.tts.provider");
  provider.addEventListener("change", () => { voice.setAttribute("list", `voices-${provider.value}`); });

  // A sample of the voice as the form has it.
  const sample = editor.querySelector("[data-sample]");
  if (!sample) return;
  const [button, says, audio] = sample.children;
  sample.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    says.className = "";
    says.textContent = "Synthesizing…";
    const body = new URLSearchParams({
      agent: sample.dataset.agent, provider: provider.value, model: field("speech.tts.model").value, voice: voice.value, language: field("language").value,
    });
    try {
      const answer = await fetch(sample.dataset.sample, { method: "POST", body });
      if (answer.headers.get("Content-Type") !== "audio/wav") {
        const plain = answer.headers.get("Content-Type")?.startsWith("text/plain");
        throw new Error(plain ? await answer.text() : "No sample: reload the page and try again.");
      }
      URL.revokeObjectURL(audio.src);
      audio.src = URL.createObjectURL(await answer.blob());
      audio.hidden = false;
      says.textContent = "";
      await audio.play();
    } catch (err) {
      says.className = "wrong";
      says.textContent = err.message;
    }
    button.disabled = false;
  });
})();

// A chat shows its message at once, and replaces itself by the page with the answer. Enter sends.
(() => {
  const listen = () => {
    const form = document.querySelector("[data-chat]");
    if (!form) return;
    const message = form.elements.message;
    message?.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
      e.preventDefault();
      form.requestSubmit();
    });
    form.addEventListener("submit", async (e) => {
      e.preventDefault();
      e.stopPropagation();
      const button = form.querySelector("button.first"), lines = form.querySelector(".chat-lines"), body = new URLSearchParams(new FormData(form));
      if (!message.value.trim() || button.disabled) return;
      button.disabled = true;
      const line = (kind, who, text) => {
        const li = document.createElement("li"), name = document.createElement("span"), p = document.createElement("p");
        li.className = kind;
        name.className = "who";
        p.className = "text";
        name.textContent = who;
        p.textContent = text;
        li.append(name, p);
        lines.append(li);
      };
      line("person", "You", message.value);
      line("agent waiting", "Agent", "…");
      try {
        const answer = await fetch(location.href, { method: "POST", body });
        const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-chat]");
        if (!next) throw new Error("no chat");
        form.replaceWith(document.adoptNode(next));
        listen();
        const field = document.querySelector("[data-chat] textarea");
        field?.focus();
        field?.scrollIntoView({ block: "nearest" });
      } catch {
        form.submit(); // the browser shows the sign-in page or the error
      }
    });
  };
  listen();
})();

// A web call with the agent.
(() => {
  const form = document.querySelector("[data-talk]");
  if (!form) return;
  const part = (name) => form.querySelector(`[data-${name}]`);
  const [error, state, lines, text] = [form.querySelector(".refused"), part("state"), form.querySelector(".chat-lines"), part("text")];
  const states = { connecting: "Connecting", reconnecting: "Reconnecting", listening: "Listening", hearing: "Hearing you", closing: "Hearing you", thinking: "Thinking", speaking: "Speaking", paused: "Hearing you", held: "Waiting", ended: "Ended" };
  let call = null, fault = null, lost = false;
  const fail = (problem) => {
    fault = problem;
    error.textContent = problem?.message ?? "";
    error.hidden = !problem;
  };
  const start = part("start"), label = start.textContent;
  const rest = (said, refused) => {
    state.textContent = said;
    state.classList.toggle("bad", refused);
    start.textContent = refused ? "Try again" : label;
    start.classList.toggle("first", !refused);
  };
  const named = (s) => call.muted && ["listening", "hearing", "closing"].includes(s) ? "You are muted" : states[s] ?? s;
  const show = (on) => {
    start.hidden = on;
    part("hangup").hidden = part("mute").hidden = !on;
    part("mute").setAttribute("aria-pressed", "false"); // each call begins with an open microphone
    if (!on) text.hidden = true;
    for (const field of form.querySelectorAll(".setup input, #f-typed")) field.disabled = on;
  };
  const line = ({ role, text: said, final }) => {
    lines.querySelector(`.waiting.${role}`)?.remove();
    if (!said) return;
    const li = document.createElement("li"), name = document.createElement("span"), p = document.createElement("p");
    li.className = final ? role : `${role} waiting`;
    name.className = "who";
    name.textContent = role === "agent" ? "Agent" : "You";
    p.className = "text";
    p.textContent = said;
    li.append(name, p);
    lines.append(li);
  };
  const ticket = async () => {
    const answer = await fetch(location.href, { method: "POST", body });
    if (!answer.headers.get("Content-Type")?.includes("json")) throw new Error("No call was started. Reload the page and try again.");
    const got = await answer.json();
    if (!answer.ok) throw new Error(got.message);
    const link = part("call");
    link.href = location.pathname.replace(/agents\/.*/, `calls/${got.call_id}`);
    link.hidden = false;
    return got;
  };
  let body = null;
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    e.stopPropagation();
    if (call || start.hidden) return;
    const typed = form.elements.typed.checked;
    body = new URLSearchParams(new FormData(form));
    fail(null);
    lines.replaceChildren();
    show(true);
    rest("Connecting", false);
    try {
      const { Parley } = await import("/rtc/parley.js");
      call = await Parley.join(ticket, typed ? { microphone: false } : {});
      call.on("state", (s) => {
        state.textContent = named(s.state);
        if (lost && s.state !== "ended" && fault?.code !== "microphone_lost") fail(null); // connected again
        lost = s.state === "reconnecting";
      });
      call.on("transcript", line);
      call.on("error", fail);
      text.hidden = !typed;
      if (typed) { part("mute").hidden = true; text.querySelector("input").focus(); }
      await call.ended;
    } catch (problem) {
      fail(problem);
    }
    rest(call ? "Ended" : "Not connected", !call);
    call = null;
    show(false);
  });
  form.elements.typed.addEventListener("change", () => {
    if (!fault) return;
    fail(null);
    rest("Ready", false);
  });
  part("hangup").addEventListener("click", () => call?.hangUp());
  part("mute").addEventListener("click", (e) => {
    if (!call) return;
    call.mute(!call.muted);
    e.target.setAttribute("aria-pressed", call.muted);
    state.textContent = named(call.state);
  });
  text.querySelector("input").addEventListener("keydown", (e) => {
    if (e.key !== "Enter") return;
    e.preventDefault();
    const said = e.target.value.trim();
    if (!said || !call) return;
    try {
      call.sendText(said);
      e.target.value = "";
      fail(null);
    } catch (problem) {
      fail(problem);
    }
  });
})();
