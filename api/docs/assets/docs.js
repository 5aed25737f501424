// Theme, menu, copy buttons and search. Pages can be read without this script.
"use strict";

(() => {
  const root = document.currentScript.dataset.root;
  const html = document.documentElement;
  try { // the theme that was chosen in the dashboard
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") html.dataset.theme = theme;
  } catch { /* without storage the theme is that of the system */ }
  html.classList.add("scripts");

  document.addEventListener("DOMContentLoaded", () => {
    const menu = document.querySelector(".menu");
    const narrow = matchMedia("(max-width: 900px)");
    const arrange = () => { menu.open = !narrow.matches; };
    narrow.addEventListener("change", arrange);
    arrange();
    letKeysScroll();
    menu.classList.add("ready");
    menu.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
    scrollTo(0, location.hash ? scrollY : 0);
    addCopyButtons();
    arrangeCode();
    labelCells();
    startSearch(document.querySelector(".search"));
  });

  // Code that is wider than its block can be scrolled with the keyboard.
  function letKeysScroll() {
    const mark = (block) => {
      if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;
      else block.removeAttribute("tabindex");
    };
    const observer = new ResizeObserver((all) => { for (const entry of all) mark(entry.target); });
    for (const block of document.querySelectorAll("article pre")) {
      mark(block);
      observer.observe(block);
    }
  }

  function addCopyButtons() {
    if (!navigator.clipboard) return; // plain HTTP
    for (const block of document.querySelectorAll("article pre")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(block.querySelector("code").textContent);
          button.textContent = "Copied";
        } catch {
          button.textContent = "Not allowed";
        }
        setTimeout(() => { button.textContent = "Copy"; }, 2000);
      });
      const frame = document.createElement("div");
      frame.className = "block";
      block.replaceWith(frame);
      frame.append(block, button);
    }
  }

  // arrangeCode keeps options whole, which would break after their hyphens, and lets long names in cells break between
  // their words.
  function arrangeCode() {
    const element = (name, text) => Object.assign(document.createElement(name), { textContent: text });
    for (const code of document.querySelectorAll("article :not(pre) > code")) {
      const [first, ...others] = code.textContent.split(/(?<=[a-z0-9])(?=[A-Z])|(?<=[a-z0-9][_/])/);
      if (code.closest("td:not(:first-child)") && /\S{24}/.test(code.textContent)) {
        code.replaceChildren(first, ...others.flatMap((part) => [element("wbr"), part]));
      } else if (code.textContent.includes("-")) {
        code.replaceChildren(...code.textContent.split(/( )/).map((w) => (/^\S{2,27}$/.test(w) && w.includes("-") ? element("span", w) : w)));
      }
    }
  }

  // labelCells lets phones show each row of a table as a block, if its texts are long or it is wider than the page.
  function labelCells() {
    const tables = [...document.querySelectorAll("article table")];
    const long = new Set();
    for (const table of tables) {
      const heads = [...table.querySelectorAll("thead th")].map((h) => h.textContent);
      const cells = [...table.querySelectorAll("tbody td")];
      if (cells.some((c) => c.textContent.length > (c.cellIndex ? 60 : 40) && (heads.length > 2 || !c.cellIndex))) long.add(table);
      for (const c of cells) if (heads[c.cellIndex] && heads.length > 2) c.dataset.label = heads[c.cellIndex] + ": ";
    }
    const phone = matchMedia("(max-width: 600px)");
    const arrange = () => {
      for (const table of tables) {
        table.className = "";
        if (phone.matches && (long.has(table) || table.scrollWidth > table.clientWidth)) table.className = "labeled";
      }
    };
    phone.addEventListener("change", arrange);
    arrange();
  }

  let loading = null;
  function load() {
    loading ??= new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = root + "guide/assets/index.js";
      script.onload = () => done(window.docsIndex.map((row) => ({
        ...row, title: row.p.toLowerCase(), heading: (row.h ?? "").toLowerCase(), text: row.t.toLowerCase(),
      })));
      script.onerror = failed;
      document.head.append(script);
    });
    return loading;
  }

  const word = /[\p{L}\p{N}]/u;

  // begins reports whether a word of the text begins with w.
  function begins(text, w) {
    for (let at = text.indexOf(w); at >= 0; at = text.indexOf(w, at + 1)) {
      if (at === 0 || !word.test(text[at - 1])) return true;
    }
    return false;
  }

  // pageRank orders pages of the same relevance: the guide, the reference, then changes and decisions.
  function pageRank(address) {
    if (!address.startsWith("guide/") || address.startsWith("guide/adr/")) return 0;
    return address.startsWith("guide/reference/") ? 1 : 2;
  }

  // find returns the sections that contain every word. Those with all words in the title are first, then those with some.
  function find(rows, words) {
    const hits = [];
    for (const row of rows) {
      const heading = row.h ? row.heading : row.title;
      const named = words.filter((w) => begins(heading, w)).length;
      let score = 0;
      for (const w of words) {
        const one = (heading.startsWith(w) ? 30 : heading.includes(w) ? 20 : 0) + (row.title.includes(w) ? 8 : 0) +
          Math.min(row.text.split(w, 6).length - 1, 5);
        if (!one) { score = 0; break; }
        score += one;
      }
      const whole = named === words.length ? (row.h ? 2 : 3) : named ? 1 : 0; // the title of a page is above a heading in it
      if (score) hits.push({ row, order: [whole, pageRank(row.a), score] });
    }
    const better = (a, b) => b.order[0] - a.order[0] || b.order[1] - a.order[1] || b.order[2] - a.order[2];
    return hits.sort(better).slice(0, 12).map((hit) => hit.row);
  }

  // excerpt appends the words around the first word that was found, with all of them marked.
  function excerpt(to, row, words) {
    const first = Math.min(...words.map((w) => row.text.indexOf(w)).filter((at) => at >= 0), row.t.length);
    const at = first < row.t.length ? first : 0;
    const from = at > 40 ? row.t.lastIndexOf(" ", at - 40) + 1 : 0;
    const end = row.t.indexOf(" ", at + 100);
    const part = (from ? "… " : "") + row.t.slice(from, end < 0 ? row.t.length : end) + (end < 0 ? "" : " …");
    const split = new RegExp("(" + words.map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|") + ")", "i");
    part.split(split).forEach((text, i) => {
      const node = i % 2 ? document.createElement("mark") : document.createTextNode(text);
      if (i % 2) node.textContent = text;
      to.append(node);
    });
  }

  function startSearch(box) {
    const input = box.querySelector("input");
    const results = box.querySelector("#results");
    const status = results.querySelector("[role=status]");
    const list = results.querySelector("ul");
    box.hidden = false;
    const show = async () => {
      const words = input.value.toLowerCase().split(/\s+/).filter((w) => w.length > 1).slice(0, 8);
      if (!words.length) { results.hidden = true; return; }
      let rows;
      try {
        rows = find(await load(), words);
      } catch {
        status.textContent = "The search index did not load. Reload the page.";
        results.hidden = false;
        return;
      }
      list.replaceChildren(...rows.map((row) => {
        const item = document.createElement("li");
        const link = document.createElement("a");
        link.href = root + row.a;
        const title = document.createElement("strong");
        title.textContent = row.h ? `${row.p} › ${row.h}` : row.p;
        const text = document.createElement("span");
        excerpt(text, row, words);
        link.append(title, text);
        item.append(link);
        return item;
      }));
      status.textContent = rows.length ? `${rows.length} results` : "No results. Try fewer or other words.";
      results.hidden = false;
    };
    input.addEventListener("focus", () => load().catch(() => {}));
    input.addEventListener("input", show);
    box.addEventListener("keydown", (e) => {
      const stops = [input, ...list.querySelectorAll("a")];
      const at = stops.indexOf(document.activeElement);
      if (e.key === "ArrowDown" || e.key === "ArrowUp") {
        e.preventDefault();
        stops[(at + (e.key === "ArrowDown" ? 1 : stops.length - 1)) % stops.length].focus();
      } else if (e.key === "Enter" && at === 0) {
        list.querySelector("a")?.click();
      } else if (e.key === "Escape") {
        results.hidden = true;
        input.focus();
      }
    });
    document.addEventListener("click", (e) => { if (!box.contains(e.target) || e.target.closest("a")) results.hidden = true; });
    document.addEventListener("keydown", (e) => {
      if (e.key === "/" && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
        e.preventDefault();
        input.focus();
      }
    });
  }
})();
