// Theme, menu, language of the samples, and requests. The page can be read without this script.
"use strict";

(() => {
  const html = document.documentElement;
  const stored = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
  const theme = stored("theme"); // the one that was chosen in the dashboard
  if (theme === "light" || theme === "dark") html.dataset.theme = theme;
  html.classList.add("scripts");

  document.addEventListener("DOMContentLoaded", () => {
    const menu = document.querySelector(".menu");
    const narrow = matchMedia("(max-width: 900px)");
    const arrange = () => { menu.open = !narrow.matches; };
    narrow.addEventListener("change", arrange);
    arrange();
    choose(stored("sample-language") ?? "curl");
    for (const part of document.querySelectorAll(".languages, .try, #access")) part.hidden = false;
    for (const button of document.querySelectorAll(".copy")) button.hidden = !navigator.clipboard; // plain HTTP
    document.querySelector("#access").addEventListener("submit", (e) => e.preventDefault());
    for (const form of document.querySelectorAll(".try")) {
      form.addEventListener("submit", (e) => { e.preventDefault(); send(form); });
    }
    addEventListener("hashchange", reveal);
    document.addEventListener("click", (e) => {
      const language = e.target.closest?.("button[data-language]");
      if (language) choose(language.dataset.language);
      if (e.target.closest?.(".menu a") && narrow.matches) menu.open = false;
      if (e.target.closest?.(".copy")) copy(e.target);
      if (e.target.closest?.(`a[href="${location.hash}"]`)) reveal(); // the hash does not change
    });
    reveal();
  });

  // choose shows the samples of one language.
  function choose(language) {
    if (!document.querySelector(`figure[data-language="${CSS.escape(language)}"]`)) language = "curl";
    for (const button of document.querySelectorAll("button[data-language]")) {
      button.setAttribute("aria-pressed", String(button.dataset.language === language));
    }
    for (const sample of document.querySelectorAll("figure[data-language]")) sample.hidden = sample.dataset.language !== language;
    try { localStorage.setItem("sample-language", language); } catch { /* applies to this page only */ }
  }

  async function copy(button) {
    try {
      await navigator.clipboard.writeText(button.closest(".samples").querySelector("figure:not([hidden]) code").textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  // reveal opens what the address points to.
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target?.tagName === "DETAILS") {
      target.open = true;
      target.scrollIntoView();
    }
  }

  function requestOf(form) {
    const query = new URLSearchParams();
    const headers = {};
    let path = form.dataset.path;
    const key = document.getElementById("key").value.trim();
    if (key) headers.Authorization = "Bearer " + key;
    for (const input of form.querySelectorAll("[data-in]")) {
      const value = input.value.trim();
      if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(value || "-"));
      else if (input.dataset.in === "query" && value) query.set(input.name, value);
      else if (input.dataset.in === "header") headers[input.name] = value || Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
    }
    let body = form.elements.body?.value;
    const rows = form.elements.rows?.files[0];
    if (rows) {
      const { planned_calls: _, ...campaign } = JSON.parse(body);
      body = new FormData();
      body.append("campaign", JSON.stringify(campaign));
      body.append("rows", rows);
    } else if (body !== undefined) {
      headers["Content-Type"] = "application/json";
    }
    return [path + (query.size ? "?" + query : ""), { method: form.dataset.method, headers, body, redirect: "error", credentials: "omit" }];
  }

  // resultLine returns a line that says by color and word how a request ended.
  function resultLine(good, word, more) {
    const line = document.createElement("div"), strong = document.createElement("strong");
    line.className = good ? "good" : "bad";
    strong.textContent = word;
    line.append(strong, more);
    return line;
  }

  async function send(form) {
    const output = form.querySelector("output");
    const button = form.querySelector("button");
    button.disabled = true;
    output.textContent = "Sending …";
    const began = performance.now();
    try {
      const [url, request] = requestOf(form);
      const response = await fetch(url, request);
      let text = await response.text();
      try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* a file */ }
      const body = document.createElement("pre");
      body.tabIndex = 0;
      body.setAttribute("aria-label", "Response");
      body.textContent = text;
      const word = response.ok ? "Success" : response.status < 500 ? "Refused" : "Failed";
      output.replaceChildren(resultLine(response.ok, `${word}: ${response.status}`, ` after ${Math.round(performance.now() - began)} ms`), body);
    } catch (e) {
      output.replaceChildren(e instanceof SyntaxError ? resultLine(false, "Not sent", ": the body is not valid JSON.") : resultLine(false, "No response", ": " + e.message));
    }
    button.disabled = false;
  }
})();
