// Runs before the page is drawn, so that it is not drawn in the other theme first.
"use strict";
(() => {
  let kept = null;
  try { kept = localStorage.getItem("theme"); } catch { /* storage is off: the system's theme */ }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
