// Before the first paint: the reader's earlier choice, where the browser lets a local file remember one.
"use strict";
(() => {
  const root = document.documentElement;
  if (typeof DecompressionStream !== "undefined") root.classList.add("js"); // without it the page stays as it stands
  try {
    const theme = localStorage.getItem("tileprof-theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch { /* storage is denied: the system's choice stands */ }
})();
