// Keys of the pages of calls: j and k move in the list, and to the next or previous call.
"use strict";
(() => {
  const typing = (e) => e.target.closest?.("input, select, textarea, [contenteditable]") || e.ctrlKey || e.metaKey || e.altKey;
  addEventListener("keydown", (e) => {
    if (typing(e) || (e.key !== "j" && e.key !== "k")) return;
    const rows = [...document.querySelectorAll("a.row")];
    if (!rows.length) {
      document.querySelector(e.key === "j" ? "a[rel=next]" : "a[rel=prev]")?.click();
      return;
    }
    const at = rows.indexOf(document.activeElement);
    const to = rows[e.key === "j" ? Math.min(at + 1, rows.length - 1) : Math.max(at - 1, 0)];
    to.focus();
    to.scrollIntoView({ block: "nearest" });
    e.preventDefault();
  });

  // A menu closes at a click outside and at Escape.
  const menu = document.querySelector("details.choose");
  addEventListener("click", (e) => { if (menu?.open && !menu.contains(e.target)) menu.open = false; });
  addEventListener("keydown", (e) => {
    if (e.key !== "Escape" || !menu?.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
})();
