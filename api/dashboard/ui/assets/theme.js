// Runs before the first paint so that the page does not flash in the other theme.
"use strict";
(() => {
  let kept = null;
  try { kept = localStorage.getItem("theme"); } catch { /* storage is off: the system's theme */ }
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
