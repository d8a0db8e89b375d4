"use strict";
// The page has its main figures without its scripts; they unpack the others and add pictures, switching of cases, sorting, tooltips
// and the theme button.  All scripts are one async function; this one comes first: it unpacks, and the others take from `report`.
// Where that cannot be done (an old browser, a damaged file) the page stays as it stands without scripts.
const root = document.documentElement;
if (!root.classList.contains("js")) return;
const report = await (async () => {
  const $ = (id) => document.getElementById(id);
  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  // ---- what stands deflated in the page ---------------------------------------------------------------------------
  const unpack = (packed) => {
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  };
  const data = await unpack($("data").textContent).catch((fault) => console.error("this page's data cannot be unpacked:", fault));
  if (!data) return null;
  for (let holder; (holder = document.querySelector(".packed"));) { // a part may hold another
    const part = element("template");
    part.innerHTML = data.parts[holder.dataset.part]; // our own templates' text, in which all names are escaped
    holder.replaceWith(part.content);
  }
  document.querySelector(":target")?.scrollIntoView(); // what is unpacked has moved the place that was asked for
  const strings = data.strings;

  // ---- numbers, as in report/numbers.py -------------------------------------------------------------------------
  const trim = (value, digits) => {
    if (value === 0) return "0";
    if (Number.isInteger(value) && Math.abs(value) < 10 ** digits) return value.toLocaleString("en-US");
    const rounded = Number(value.toPrecision(digits));
    const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(rounded))));
    return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  };
  const scaled = (value, digits, steps) => {
    for (const [factor, suffix] of steps) {
      if (Number(value.toPrecision(digits)) >= factor || factor === 1) return trim(value / factor, digits) + (suffix ? "\u00a0" + suffix : "");
    }
  };
  const si = (value) => scaled(value, 3, [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]]);
  const duration = (value) => scaled(value, 4, [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);
  const count = (value) => value.toLocaleString("en-US");
  const percent = (share) => trim(share * 100, 3) + "\u00a0%";
  const provenance = (number) => {
    const entry = data.provenances[number - 1];
    if (!entry) return "";
    const [kind, tool, version, detail] = entry;
    return [kind, [tool, version].filter(Boolean).join(" "), detail].filter(Boolean).join(" · ");
  };

  // ---- theme ----------------------------------------------------------------------------------------------------
  const themeButton = $("theme");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const nameTheme = () => { themeButton.textContent = dark() ? "Light theme" : "Dark theme"; };
  themeButton.hidden = false;
  themeButton.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("tileprof-theme", root.dataset.theme); } catch { /* not remembered, still switched */ }
    nameTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameTheme);
  nameTheme();

  // ---- where the reader is --------------------------------------------------------------------------------------
  const links = new Map([...document.querySelectorAll(".side a")].map((a) => [a.hash.slice(1), a]));
  const spy = () => {
    let current = "summary";
    for (const id of links.keys()) if ($(id) && $(id).getBoundingClientRect().top < innerHeight * 0.3) current = id;
    if (innerHeight + scrollY >= document.body.scrollHeight - 4) current = [...links.keys()].at(-1);
    for (const [id, a] of links) id === current ? a.setAttribute("aria-current", "true") : a.removeAttribute("aria-current");
  };
  addEventListener("scroll", () => requestAnimationFrame(spy), { passive: true });
  spy();

  // ---- tooltips: provenance and exact value of a figure, text of a mark --------------------------------------------
  const tip = $("tip");
  const tipText = (target) => {
    for (const [selector, text] of report.tips) if (target.matches(selector)) return text(target);
    if (target.dataset.tip) return target.dataset.tip;
    if (target.matches(".na")) return "absent: not known here";
    const exact = target.dataset.exact;
    return (exact ? exact + "\n" : "") + provenance(Number(target.closest("[data-p]").dataset.p));
  };
  const showTip = (target, x, y) => {
    tip.textContent = tipText(target);
    tip.hidden = !tip.textContent;
    if (tip.hidden) return;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
    tip.style.top = (y + 18 + box.height > innerHeight ? Math.max(6, y - box.height - 10) : y + 18) + "px";
  };
  const hideTip = () => { tip.hidden = true; };
  const tipped = (event) => {
    if (!event.target.closest) return null;
    const own = event.target.closest("[data-p],[data-tip],[data-node],[data-span],.na,.mark");
    if (own?.matches("tr")) return event.target.closest("td:not([colspan],.mono)"); // a row whose cells have one source
    if (own) return own;
    // In the table of all operations a whole column has one source, which its heading names.
    const cell = event.target.closest(".tree td");
    return cell ? cell.closest("table").tHead.rows[0].cells[cell.cellIndex].closest("[data-p]") : null;
  };
  const silence = (target) => { // the browser's own tooltip would cover ours
    if (target.title) { target.dataset.exact = target.title; target.removeAttribute("title"); }
    const title = target.querySelector(":scope > title");
    if (!title) return;
    target.dataset.tip ??= title.textContent.replaceAll(",\n", "\n");
    target.setAttribute("aria-label", title.textContent); // it is still the mark's name
    title.remove();
  };
  document.addEventListener("mousemove", (event) => {
    const target = tipped(event);
    if (!target) return hideTip();
    silence(target);
    showTip(target, event.clientX, event.clientY);
  });
  document.addEventListener("focusin", (event) => {
    const target = tipped(event);
    if (!target || !target.matches(":focus-visible")) return hideTip();
    silence(target);
    const box = target.getBoundingClientRect();
    showTip(target, box.right, box.bottom);
  });
  document.addEventListener("focusout", hideTip);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

  const heat = (value, top) => (top <= 0 || value <= 0 ? 0 : Math.max(1, Math.min(6, Math.floor((value / top) * 6 + 0.5))));
  // ---- what scrolls sideways can be reached and scrolled by keyboard ----------------------------------------------
  const reachable = (box) => {
    const scrolls = box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
    if (!scrolls) { if (box.dataset.own) { box.removeAttribute("tabindex"); box.removeAttribute("role"); } return; }
    if (box.tabIndex >= 0) return;
    box.dataset.own = "1";
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    const heading = box.closest("article, section")?.querySelector("h3, h2");
    box.setAttribute("aria-label", (heading?.textContent.trim() ?? "Table") + ", scrolls");
  };
  const sizes = new ResizeObserver((entries) => entries.forEach((entry) => reachable(entry.target)));
  const many = document.querySelector("main.many") !== null; // there, what is out of view is not laid out yet
  document.querySelectorAll(".scroll").forEach((box) => { if (!many) reachable(box); sizes.observe(box); });

  const tips = new Map(); // selector -> function that gives the text of an element's tooltip when it is wanted
  // Copies text, also from a file, where some browsers have no clipboard; says on the button whether it did.
  const copy = (button, text) => {
    const was = button.textContent;
    const say = (word) => { button.textContent = word; setTimeout(() => { button.textContent = was; }, 1500); };
    const byHand = () => {
      const area = element("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      say(done ? "Copied" : "Not copied");
    };
    if (navigator.clipboard && window.isSecureContext) navigator.clipboard.writeText(text).then(() => say("Copied"), byHand);
    else byHand();
  };
  return { $, data, unpack, strings, si, duration, count, percent, trim, provenance, element, hideTip, heat, tips, copy };
})();
if (!report) { root.classList.remove("js"); return; }
