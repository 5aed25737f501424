// Charts: values on hover and by keyboard. The arrow keys move between the links of a chart, which is one tab stop.
"use strict";
(() => {
  const root = document.querySelector("[data-tips]");
  if (!root) return;
  for (const title of root.querySelectorAll("svg title")) title.remove(); // the links have labels

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("aria-hidden", "true");
  tip.hidden = true;
  document.body.append(tip);
  const hide = () => { tip.hidden = true; };
  const show = (of) => {
    tip.textContent = of.getAttribute("aria-label");
    tip.hidden = false;
    const box = of.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, box.left + box.width / 2 - own.width / 2), document.documentElement.clientWidth - own.width - 8);
    const above = box.top - own.height - 6;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(above > 4 ? above : box.bottom + 6) + scrollY}px`;
  };
  const labeled = (e) => e.target.closest?.("[data-roving] [aria-label]");
  root.addEventListener("pointerover", (e) => { const of = labeled(e); if (of) show(of); else hide(); });
  root.addEventListener("pointerleave", hide);
  root.addEventListener("focusin", (e) => { const of = labeled(e); if (of) show(of); else hide(); });
  root.addEventListener("focusout", hide);
  addEventListener("keydown", (e) => { if (e.key === "Escape") hide(); });

  for (const chart of root.querySelectorAll("[data-roving]")) {
    const all = [...chart.querySelectorAll("a")];
    const go = (to) => {
      if (!to) return;
      for (const a of all) a.setAttribute("tabindex", a === to ? "0" : "-1");
      to.focus();
    };
    // The cells of a table are found by their place, so that up and down keep the column.
    const cells = chart.dataset.roving ? [...chart.querySelectorAll("tbody td")] : null;
    const across = (from, by) => {
      for (let at = cells.indexOf(from.parentNode) + by; at >= 0 && at < cells.length; at += by) {
        const a = cells[at].querySelector("a");
        if (a) return a;
      }
      return null;
    };
    chart.addEventListener("keydown", (e) => {
      const at = all.indexOf(document.activeElement);
      if (at < 0) return;
      const row = Number(chart.dataset.roving);
      const to = {
        ArrowLeft: () => all[at - 1], ArrowRight: () => all[at + 1], Home: () => all[0], End: () => all[all.length - 1],
        ArrowUp: () => cells && across(all[at], -row), ArrowDown: () => cells && across(all[at], row),
      }[e.key];
      if (!to) return;
      e.preventDefault();
      go(to());
    });
  }
})();
