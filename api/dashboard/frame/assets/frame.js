"use strict";

// The theme: what was chosen wins over the system's.
const dark = matchMedia("(prefers-color-scheme: dark)");
for (const button of document.querySelectorAll("[data-theme-toggle]")) {
  button.addEventListener("click", () => {
    const now = document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem("theme", next); } catch { /* it lasts as long as the page */ }
  });
}

// A value is copied, and the button says so.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const from = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(from.value ?? from.textContent);
      button.textContent = "Copied";
    } catch {
      from.select?.();
      button.textContent = "Press Ctrl C";
    }
  });
}

// On a phone the menu is closed until it is asked for.
const narrow = matchMedia("(max-width: 820px)");
const menu = document.querySelector(".menu");
if (menu) {
  const fit = () => { menu.open = !narrow.matches; };
  fit();
  narrow.addEventListener("change", fit);
}

// A form is sent once, however often its button is pressed; so are those that come later.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = "yes";
  form.querySelector("button:not([type=button])")?.setAttribute("aria-busy", "true");
  form.querySelector(".sending")?.removeAttribute("hidden");
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    form.querySelector("[aria-busy]")?.removeAttribute("aria-busy");
    form.querySelector(".sending")?.setAttribute("hidden", "");
  }
});

// What was refused is where one goes on.
(document.querySelector("[aria-invalid]") ?? document.querySelector(".refused"))?.focus?.();
