"use strict";
(() => { // in a function: a page may be written in the place of another
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

  // Files up to so many bytes are asked for again by the page of signing in, with what was
  // typed; of longer ones it is asked first whether anybody is signed in.
  const kept = 500000;

  // send sends a form with a file, and shows how much of it is there. Where that cannot be begun
  // the browser sends it; where it breaks off it is sent again by who wants that.
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
      again.textContent = "Send it again";
      says.after(again);
    };
    if ([...body.values()].some((v) => v.size > kept)) {
      const here = await fetch(form.action, { method: "HEAD", redirect: "manual" }).catch(() => null);
      if (here?.type === "opaqueredirect") {
        halt('You were signed out, and nothing was sent. <a href="/dashboard/sign-in" target="_blank">Sign in in another tab</a>, then:');
        return;
      }
    }
    request.upload.addEventListener("progress", (e) => {
      begun = true;
      if (!e.lengthComputable) return;
      bar.max = e.total;
      bar.value = e.loaded;
      says.textContent = e.loaded < e.total ? `${Math.floor(100 * e.loaded / e.total)} % is sent…` : "It is sent, and is being read…";
      if (e.loaded >= e.total) bar.removeAttribute("value");
    });
    request.addEventListener("load", () => {
      const to = request.getResponseHeader("Parley-To");
      if (to) { location.assign(to); return; }
      document.open(); // what was refused, or is shown once
      document.write(request.responseText);
      document.close();
    });
    request.addEventListener("error", () => {
      if (!begun) { form.submit(); return; }
      halt("The connection broke off. Whether the file arrived is not known.");
    });
    request.open("POST", form.action);
    request.setRequestHeader("Parley-Upload", "1");
    request.send(body);
  };

  // A form is sent once, however often its button is pressed; so are those that come later.
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

  // What was refused is where one goes on.
  (document.querySelector("[aria-invalid]") ?? document.querySelector(".refused"))?.focus?.();
})();
