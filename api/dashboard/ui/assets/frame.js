"use strict";
(() => { // in a function: document.write may load this script twice
  // The stored theme takes precedence over the system's.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  for (const button of document.querySelectorAll("[data-theme-toggle]")) {
    button.addEventListener("click", () => {
      const now = document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
      const next = now === "dark" ? "light" : "dark";
      document.documentElement.dataset.theme = next;
      try { localStorage.setItem("theme", next); } catch { /* no storage: kept until the page is left */ }
    });
  }

  // Copy buttons.
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const from = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(from.value ?? from.textContent);
        button.textContent = "Copied";
      } catch {
        from.select?.();
        button.textContent = "Press Ctrl+C";
      }
    });
  }

  // On narrow screens the menu starts closed.
  const narrow = matchMedia("(max-width: 820px)");
  const menu = document.querySelector(".menu");
  if (menu) {
    const fit = () => { menu.open = !narrow.matches; };
    fit();
    narrow.addEventListener("change", fit);
  }

  // Forms with files up to this size, in bytes, are posted even without a session: the
  // sign-in page keeps the fields. Before larger uploads the session is checked.
  const kept = 500000;

  // send uploads a form with progress. Without upload events the browser submits the form;
  // after a broken upload the user can retry.
  const send = async (form) => {
    const request = new XMLHttpRequest();
    const bar = form.querySelector(".sending progress");
    const says = form.querySelector(".sending span");
    const body = new FormData(form);
    let begun = false;
    bar.hidden = false;
    form.querySelector(".sending button")?.remove();
    const halt = (why) => {
      delete form.dataset.sent;
      form.querySelector("[aria-busy]")?.removeAttribute("aria-busy");
      bar.hidden = true;
      says.innerHTML = why;
      const again = document.createElement("button");
      again.className = "button small";
      again.textContent = "Retry upload";
      says.after(again);
    };
    if ([...body.values()].some((v) => v.size > kept)) {
      const here = await fetch(form.action, { method: "HEAD", redirect: "manual" }).catch(() => null);
      if (here?.type === "opaqueredirect") {
        halt('You are signed out; nothing was uploaded. <a href="/dashboard/sign-in" target="_blank">Sign in in another tab</a>, then retry:');
        return;
      }
    }
    request.upload.addEventListener("progress", (e) => {
      begun = true;
      if (!e.lengthComputable) return;
      bar.max = e.total;
      bar.value = e.loaded;
      says.textContent = e.loaded < e.total ? `${Math.floor(100 * e.loaded / e.total)}% uploaded…` : "Uploaded. Processing…";
      if (e.loaded >= e.total) bar.removeAttribute("value");
    });
    request.addEventListener("load", () => {
      const to = request.getResponseHeader("Parley-To");
      if (to) { location.assign(to); return; }
      document.open(); // a rejected form, or a secret shown once
      document.write(request.responseText);
      document.close();
    });
    request.addEventListener("error", () => {
      if (!begun) { form.submit(); return; }
      halt("Connection lost. The file may or may not have arrived.");
    });
    request.open("POST", form.action);
    request.setRequestHeader("Parley-Upload", "1");
    request.send(body);
  };

  // A form is submitted once, however often its button is clicked.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
    form.querySelector("button:not([type=button])")?.setAttribute("aria-busy", "true");
    form.querySelector(".sending")?.removeAttribute("hidden");
    if (form.enctype === "multipart/form-data") {
      event.preventDefault();
      send(form);
    }
  });
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) {
      delete form.dataset.sent;
      form.querySelector("[aria-busy]")?.removeAttribute("aria-busy");
      form.querySelector(".sending")?.setAttribute("hidden", "");
    }
  });

  // Menus close by Escape, and by a click elsewhere.
  const menus = () => document.querySelectorAll("details[data-menu][open]");
  document.addEventListener("click", (e) => { for (const m of menus()) if (!m.contains(e.target)) m.open = false; });
  document.addEventListener("keydown", (e) => {
    if (e.key !== "Escape") return;
    for (const m of menus()) {
      m.open = false;
      m.querySelector("summary").focus();
    }
  });

  // Focus the first error.
  (document.querySelector("[aria-invalid]") ?? document.querySelector(".refused"))?.focus?.();
})();
