// Keeps live parts of a page up to date: by a stream if the page has one, else by polling,
// less often when responses are slow.
"use strict";
(() => {
  const key = (e) => e.id || e.getAttribute("href") || e.name || "";

  // An update between the press and the release of a button would lose the click, so updates wait for the release. They
  // wait at most 10 seconds, because the release may happen where the page does not see it.
  let pressed = 0; // timer of the press; 0 if nothing is pressed
  const waiting = new Map();
  const press = () => { clearTimeout(pressed); pressed = setTimeout(update, 10000); };
  const update = () => {
    clearTimeout(pressed);
    pressed = 0;
    for (const [part, html] of waiting) put(part, html);
    waiting.clear();
  };
  const release = () => { if (pressed) setTimeout(update); }; // after the click
  addEventListener("pointerdown", (e) => { if (e.isPrimary && e.button === 0) press(); }, true);
  addEventListener("keydown", (e) => { if (e.key === " " && e.target.closest("button, summary")) press(); }, true);
  for (const end of ["pointerup", "pointercancel", "keyup", "dragend"]) addEventListener(end, release, true);
  addEventListener("blur", (e) => { if (e.target === window) release(); });

  // put replaces the content of a part and keeps open details and the focus.
  const put = (part, html) => {
    if (pressed) { waiting.set(part, html); return; }
    const next = new DOMParser().parseFromString(html, "text/html");
    const now = next.getElementById(part.id) ?? next.body;
    if (now.id === part.id) {
      if (now.dataset.live) part.dataset.live = now.dataset.live;
      else delete part.dataset.live;
    }
    if (now.innerHTML === part.innerHTML || part.dataset.shown === now.innerHTML) return;
    part.dataset.shown = now.innerHTML;
    const open = [...part.querySelectorAll("details[id][open]")].map((d) => d.id);
    const focus = part.contains(document.activeElement) ? key(document.activeElement) : "";
    const typed = [...part.querySelectorAll("input, textarea")].filter((e) => e.name && e.value !== e.defaultValue).map((e) => [e.name, e.value]);
    part.replaceChildren(...now.childNodes);
    for (const [name, value] of typed) {
      const field = part.querySelector(`[name="${CSS.escape(name)}"]:not([type=hidden])`);
      if (field) field.value = value;
    }
    for (const id of open) {
      const d = document.getElementById(id);
      if (d) d.open = true;
    }
    if (focus) [...part.querySelectorAll("a, button, summary, input, [tabindex]")].find((e) => key(e) === focus)?.focus({ preventScroll: true });
    clock();
    document.dispatchEvent(new CustomEvent("shown", { detail: part }));
  };

  // clock updates running timers.
  const clock = () => {
    for (const e of document.querySelectorAll("[data-since]")) {
      const s = Math.max(0, Math.floor(Date.now() / 1000 - Number(e.dataset.since)));
      const text = `${s >= 3600 ? `${Math.floor(s / 3600)}:${String(Math.floor(s / 60) % 60).padStart(2, "0")}` : Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")}`;
      if (e.textContent !== text) e.textContent = text;
    }
  };
  clock();
  setInterval(clock, 1000);

  const lost = (is) => document.documentElement.classList.toggle("stale", is);

  const poll = async () => {
    const parts = [...document.querySelectorAll("[data-live]")];
    if (!parts.length) return;
    let wait = 1000 * Math.min(...parts.map((p) => Number(p.dataset.live)));
    if (!document.hidden) {
      const began = performance.now();
      try {
        const answer = await fetch(parts[0].dataset.from ?? location.href, { headers: { Accept: "text/html" } });
        if (answer.redirected) { location.reload(); return; } // signed out
        if (answer.ok) {
          const html = await answer.text();
          for (const part of parts) put(part, html);
        }
        lost(!answer.ok);
      } catch { lost(true); }
      wait = Math.max(wait, 20 * (performance.now() - began));
    }
    setTimeout(poll, wait);
  };

  const source = document.querySelector("[data-stream]");
  if (!source) {
    const first = document.querySelector("[data-live]");
    if (first) setTimeout(poll, 1000 * Number(first.dataset.live));
    return;
  }
  let stream = null;
  const listen = () => {
    stream?.close();
    const own = new EventSource(source.dataset.stream + location.search);
    stream = own;
    for (const part of document.querySelectorAll("[data-live]")) {
      own.addEventListener(part.id, (e) => { if (own === stream) { lost(false); put(part, e.data); } });
    }
    own.addEventListener("error", () => {
      if (own !== stream) return;
      lost(true);
      if (own.readyState === EventSource.CLOSED) poll();
    });
  };
  listen();
  addEventListener("pagehide", () => stream.close());

  // choose shows another call in the panel, or none, without leaving the page.
  const choose = async (link) => {
    const from = new URLSearchParams(location.search).get("call");
    try {
      const answer = await fetch(link.href, { headers: { Accept: "text/html" } });
      if (!answer.ok || answer.redirected) throw new Error("no page");
      const html = await answer.text();
      history.replaceState(null, "", link.href);
      for (const part of document.querySelectorAll("[data-live]")) put(part, html);
    } catch { location.assign(link.href); return; }
    listen();
    (document.querySelector("#panel h2") ?? document.getElementById(`row-${from}`))?.focus();
  };
  document.addEventListener("click", (e) => {
    const link = e.target.closest("a[data-panel]") ?? (e.target.closest("a, button, summary, form") ? null : e.target.closest("tr")?.querySelector("a[data-panel]"));
    if (!link || e.ctrlKey || e.metaKey || e.shiftKey || getSelection().toString()) return;
    e.preventDefault();
    choose(link);
  });
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape") { const close = document.querySelector("#panel a[data-panel]"); if (close) choose(close); }
    const rows = [...document.querySelectorAll("#calls a[data-panel]")];
    const at = rows.indexOf(document.activeElement);
    const to = at < 0 ? null : rows[at + { ArrowDown: 1, ArrowUp: -1 }[e.key]];
    if (to) { e.preventDefault(); to.focus(); }
  });
})();
