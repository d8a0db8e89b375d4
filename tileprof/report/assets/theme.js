"use strict";
// Before the first paint: the reader's earlier choice, where the browser lets a local file remember one.
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  try {
    const theme = localStorage.getItem("tileprof-theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch { /* storage is denied: the system's choice stands */ }
})();
