"use strict";
// The page is complete without this script; it adds the flame graph, switching of cases, tooltips and the theme button.
(() => {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);
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
  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  // ---- theme ----------------------------------------------------------------------------------------------------
  const root = document.documentElement, themeButton = $("theme");
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
    if (target.dataset.tip) return target.dataset.tip;
    if (target.matches(".na")) return "absent: not known here";
    const exact = target.dataset.exact;
    return (exact ? exact + "\n" : "") + provenance(Number(target.dataset.p));
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
    const own = event.target.closest("[data-p],[data-tip],.na");
    if (own) return own;
    // In the table of all operations a whole column has one source, which its heading names.
    const cell = event.target.closest(".tree td");
    return cell ? cell.closest("table").tHead.rows[0].cells[cell.cellIndex].closest("[data-p]") : null;
  };
  const silence = (target) => { // the browser's own tooltip would cover ours
    if (target.title) { target.dataset.exact = target.title; target.removeAttribute("title"); }
    const title = target.querySelector(":scope > title");
    if (title) title.remove();
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

  // ---- source: figures of the chosen case -------------------------------------------------------------------------
  const heat = (value, top) => (top <= 0 || value <= 0 ? 0 : Math.max(1, Math.min(6, Math.floor((value / top) * 6 + 0.5))));
  // Lines of the function around first..last: from its decorators to the next line that starts in the first column.
  const extent = (code, first, last) => {
    let begin = first, end = last;
    while (begin > 1 && !/^(def|class|async)\b/.test(code[begin - 1])) begin--;
    while (begin > 1 && code[begin - 2].startsWith("@")) begin--;
    while (end < code.length && !/^\S/.test(code[end])) end++;
    return [begin, end];
  };
  const showSource = (table, file, key) => {
    const chosen = data.sources[file].cases[key];
    const at = new Map(chosen.lines.map((line, index) => [line, index]));
    const tops = chosen.values.map((column) => (column ? Math.max(...column.map((value) => value ?? 0)) : 0));
    const shown = chosen.values.filter(Boolean).length;
    const first = Math.min(...chosen.lines), last = Math.max(...chosen.lines);
    const [begin, end] = extent([...table.tBodies[0].rows].map((row) => row.cells[row.cells.length - 1].textContent), first, last);
    const [quantities, kinds] = table.tHead.rows;
    let position = 0;
    for (const heading of [...quantities.cells].slice(1, -1)) { // a heading spans those of its columns that this case has
      heading.dataset.span ??= heading.colSpan;
      let visible = 0;
      for (let end = position + Number(heading.dataset.span); position < end; position++) {
        kinds.cells[position].hidden = !chosen.values[position];
        if (chosen.values[position]) visible++;
      }
      heading.hidden = !visible;
      if (visible) heading.colSpan = visible;
    }
    for (const row of table.tBodies[0].rows) {
      const number = Number(row.cells[0].textContent);
      row.classList.toggle("off", number < begin || number > end);
      if (!row.classList.contains("on")) { row.cells[1].colSpan = Math.max(1, shown); continue; }
      const index = at.get(number);
      chosen.values.forEach((column, position) => {
        const cell = row.cells[position + 1], value = column && index !== undefined ? column[index] : null;
        cell.className = "n";
        cell.hidden = !column;
        cell.removeAttribute("title");
        delete cell.dataset.p;
        delete cell.dataset.exact;
        cell.textContent = value !== null ? si(value) : index === undefined ? "" : "—";
        if (value === null) { cell.classList.toggle("na", index !== undefined); return; }
        cell.dataset.p = chosen.p[position];
        cell.dataset.exact = count(value);
        const step = heat(value, tops[position]);
        if (step) cell.classList.add("h" + step);
      });
    }
    const row = [...table.tBodies[0].rows].find((candidate) => Number(candidate.cells[0].textContent) === first);
    if (row) table.closest(".code").scrollTop = Math.max(0, row.offsetTop - 9 * row.offsetHeight);
  };
  for (const select of document.querySelectorAll(".source-case")) {
    const table = document.querySelector(`.src[data-file="${select.dataset.file}"]`);
    select.addEventListener("change", () => showSource(table, Number(select.dataset.file), select.value));
    showSource(table, Number(select.dataset.file), select.value);
  }

  // ---- flame graph ------------------------------------------------------------------------------------------------
  if (!$("flame-panel")) return;
  const graph = $("flame-graph"), info = $("flame-info"), crumbs = $("flame-crumbs"), modes = $("flame-modes");
  const caseSelect = $("flame-case"), search = $("flame-search");
  const ROW = 30, LEAST = 1.5;
  const state = { tree: null, mode: "", zoom: 0, focus: 0 };

  data.flame.forEach((tree) => {
    tree.children = tree.name.map(() => []);
    tree.parent.forEach((parent, index) => { if (parent >= 0) tree.children[parent].push(index); });
  });
  const label = (tree, node) => strings[tree.name[node]];
  const modeIndex = (tree, id) => tree.modes.findIndex((mode) => mode.id === id);
  const weight = (tree, node, id) => { const index = modeIndex(tree, id); return index < 0 ? null : tree.w[index][node]; };
  const show = (value, unit) => (unit === "ns" ? duration(value) : si(value) + "\u00a0" + unit);
  const source = (tree, node, index) => { const p = tree.p[index]; return provenance(Array.isArray(p) ? p[node] : p); };
  const path = (tree, node) => { const found = []; for (let at = node; at >= 0; at = tree.parent[at]) found.unshift(at); return found; };

  // All modes of all targets, so that one that a target lacks is seen to be missing rather than not there.
  const allModes = data.modes.map((id) => data.flame.flatMap((tree) => tree.modes).find((mode) => mode.id === id));

  const describe = (tree, node) => {
    const lines = [label(tree, node)];
    const file = strings[tree.file[node]];
    if (file && tree.line[node]) lines.push(`${file}:${tree.line[node]}`);
    tree.modes.forEach((mode, index) => {
      const value = tree.w[index][node];
      if (value === null) return;
      const whole = tree.w[index][0], above = tree.parent[node] < 0 ? null : tree.w[index][tree.parent[node]];
      const shares = [whole ? percent(value / whole) + " of all" : "", above ? percent(value / above) + " of " + label(tree, tree.parent[node]) : ""];
      lines.push(`${mode.label.toLowerCase()}: ${mode.unit === "ns" ? duration(value) : count(value)} (${[mode.kind, ...shares].filter(Boolean).join(", ")})`);
    });
    return lines.join("\n");
  };

  const inform = (tree, node) => {
    const index = modeIndex(tree, state.mode), mode = tree.modes[index];
    info.replaceChildren();
    if (!mode) return;
    const value = tree.w[index][node];
    info.append(element("b", "", label(tree, node)), " ");
    const file = strings[tree.file[node]], line = tree.line[node];
    if (file && line) info.append(`${file}:${line} `);
    info.append("· ");
    if (value === null) info.append(`${mode.label.toLowerCase()} not known here`);
    else {
      const whole = tree.w[index][0];
      info.append(element("b", "", show(value, mode.unit)), whole ? ` · ${percent(value / whole)} of all` : "");
      const inner = tree.children[node].reduce((sum, child) => sum + (tree.w[index][child] ?? 0), 0);
      if (tree.children[node].length && value > inner) info.append(` · ${percent((value - inner) / value)} its own`);
      info.append(` · ${source(tree, node, index)}`);
    }
    const flag = tree.flag[index][node];
    if (flag) info.append(` · flagged: ${flag}`);
    const detail = strings[tree.detail[node]];
    if (detail) info.append(element("br"), element("code", "", detail));
  };

  const matcher = () => {
    const text = search.value.trim();
    search.removeAttribute("aria-invalid");
    if (!text) return null;
    const pattern = /^\/(.+)\/$/.exec(text);
    if (pattern) {
      try { const expression = new RegExp(pattern[1], "i"); return (name) => expression.test(name); }
      catch { search.setAttribute("aria-invalid", "true"); return () => false; }
    }
    return (name) => name.toLowerCase().includes(text.toLowerCase());
  };

  const draw = (keepFocus) => {
    const tree = state.tree, index = modeIndex(tree, state.mode);
    graph.replaceChildren();
    const matches = matcher(), width = graph.clientWidth, kinds = new Set();
    if (index < 0 || !tree.w[index][state.zoom]) {
      graph.style.height = ROW + "px";
      graph.append(element("p", "", "No figure of this kind for this choice: it was not measured or is not known."));
      info.replaceChildren();
    } else {
      const column = tree.w[index], above = path(tree, state.zoom).slice(0, -1);
      let deepest = 0;
      const add = (node, left, share, depth, ancestor) => {
        const box = element("div", "k-" + strings[tree.kind[node]], width * share > 34 ? label(tree, node) : "");
        const value = column[node];
        if (width * share > 120) box.append(" ", element("small", "", ancestor ? "" : show(value, tree.modes[index].unit)));
        if (width * share < 16) box.classList.add("slim");
        box.style.left = left * 100 + "%";
        box.style.width = share * 100 + "%";
        box.style.top = depth * ROW + "px";
        box.setAttribute("role", "treeitem");
        box.setAttribute("aria-level", depth + 1);
        box.setAttribute("aria-label", `${label(tree, node)} ${value === null ? "not known" : show(value, tree.modes[index].unit)}`);
        box.tabIndex = node === state.focus ? 0 : -1;
        box.dataset.node = node;
        box.dataset.tip = describe(tree, node);
        if (ancestor) box.classList.add("dim");
        if (matches) box.classList.add(matches(label(tree, node) + " " + strings[tree.detail[node]]) ? "hit" : "dim");
        kinds.add(strings[tree.kind[node]]);
        deepest = Math.max(deepest, depth);
        graph.append(box);
      };
      above.forEach((node, depth) => add(node, 0, 1, depth, true));
      const stack = [[state.zoom, 0, 1, above.length]];
      while (stack.length) {
        const [node, left, share, depth] = stack.pop();
        add(node, left, share, depth, false);
        let at = left;
        for (const child of tree.children[node]) {
          if (!column[child] || !column[node]) continue;
          const part = (column[child] / column[node]) * share;
          if (part * width >= LEAST) stack.push([child, at, part, depth + 1]);
          at += part;
        }
      }
      graph.style.height = (deepest + 1) * ROW + "px";
      if (!graph.querySelector('[tabindex="0"]')) { state.focus = state.zoom; const box = at(state.zoom); if (box) box.tabIndex = 0; }
      inform(tree, state.focus);
      if (keepFocus) at(state.focus)?.focus();
    }
    crumbs.replaceChildren();
    path(tree, state.zoom).forEach((node, depth, all) => {
      if (depth) crumbs.append("›");
      if (depth === all.length - 1) crumbs.append(element("b", "", label(tree, node)));
      else { const button = element("button", "", label(tree, node)); button.type = "button"; button.addEventListener("click", () => zoom(node)); crumbs.append(button); }
    });
    const key = $("flame-key");
    key.replaceChildren();
    for (const kind of kinds) { const item = element("li", "", kind); item.prepend(element("i", "k-" + kind)); key.append(item); }
    caseSelect.value = data.flame.indexOf(tree) + ":" + (path(tree, state.zoom)[1] ?? 0);
  };
  const at = (node) => graph.querySelector(`[data-node="${node}"]`);
  const zoom = (node, keepFocus) => { state.zoom = node; state.focus = node; hideTip(); draw(keepFocus); };

  const drawModes = () => {
    modes.replaceChildren();
    for (const mode of allModes) {
      const own = state.tree.modes.find((known) => known.id === mode.id);
      const button = element("button", "", (own ?? mode).label);
      button.type = "button";
      button.setAttribute("role", "radio");
      button.setAttribute("aria-checked", String(mode.id === state.mode));
      button.tabIndex = mode.id === state.mode ? 0 : -1;
      button.dataset.mode = mode.id;
      button.append(element("span", "pv " + mode.kind, mode.kind));
      button.disabled = !own;
      button.title = own ? mode.about : `no such figures on ${state.tree.target}`;
      button.addEventListener("click", () => setMode(mode.id));
      modes.append(button);
    }
  };
  const setMode = (id, focus) => {
    state.mode = id;
    drawModes();
    draw(false);
    if (focus) modes.querySelector(`[data-mode="${id}"]`)?.focus();
  };
  modes.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const usable = state.tree.modes.map((mode) => mode.id), ordered = allModes.map((mode) => mode.id).filter((id) => usable.includes(id));
    setMode(ordered[(ordered.indexOf(state.mode) + step + ordered.length) % ordered.length], true);
  });

  const choose = (treeIndex, node) => {
    const tree = data.flame[treeIndex];
    state.tree = tree;
    if (modeIndex(tree, state.mode) < 0 || !weight(tree, node, state.mode)) {
      // Executed instructions say most; time comes first only where operations have times of their own.
      const wanted = ["executed", "executed_measured", "time", "static"].find((id) => weight(tree, node, id));
      state.mode = wanted ?? (tree.modes[0] ? tree.modes[0].id : "");
    }
    state.zoom = state.focus = node;
    drawModes();
    draw(false);
  };

  data.flame.forEach((tree, treeIndex) => {
    const group = element("optgroup");
    group.label = tree.target === tree.arch ? tree.target : `${tree.target} · ${tree.arch}`;
    const option = (node, text) => { const made = element("option", "", text); made.value = treeIndex + ":" + node; group.append(made); };
    option(0, "all cases on " + tree.target);
    for (const child of tree.children[0]) option(child, `${label(tree, child)} @ ${tree.target}`);
    caseSelect.append(group);
  });
  caseSelect.addEventListener("change", () => { const [tree, node] = caseSelect.value.split(":").map(Number); choose(tree, node); });
  search.addEventListener("input", () => draw(false));
  graph.addEventListener("click", (event) => { const box = event.target.closest("[data-node]"); if (box) zoom(Number(box.dataset.node)); });
  graph.addEventListener("mouseover", (event) => { const box = event.target.closest("[data-node]"); if (box) inform(state.tree, Number(box.dataset.node)); });
  graph.addEventListener("focusin", (event) => { const box = event.target.closest("[data-node]"); if (box) { state.focus = Number(box.dataset.node); inform(state.tree, state.focus); } });
  graph.addEventListener("keydown", (event) => {
    const box = event.target.closest("[data-node]");
    if (!box) return;
    const tree = state.tree, node = Number(box.dataset.node), parent = tree.parent[node];
    const siblings = parent < 0 ? [node] : tree.children[parent].filter(at), place = siblings.indexOf(node);
    const next = {
      ArrowDown: () => tree.children[node].find(at), ArrowUp: () => parent, ArrowRight: () => siblings[place + 1], ArrowLeft: () => siblings[place - 1], Home: () => 0,
    }[event.key];
    if (next) {
      event.preventDefault();
      const target = at(next() ?? -1);
      if (target) { box.tabIndex = -1; target.tabIndex = 0; target.focus(); }
    } else if (event.key === "Enter" || event.key === " ") { event.preventDefault(); zoom(node, true); }
    else if (event.key === "Escape" || event.key === "Backspace") { event.preventDefault(); zoom(Math.max(0, tree.parent[state.zoom]), true); }
  });
  let drawnWidth = 0;
  new ResizeObserver(() => { if (graph.clientWidth !== drawnWidth) { drawnWidth = graph.clientWidth; if (state.tree) draw(false); } }).observe(graph);
  const most = data.flame.reduce((best, tree, index) => (tree.modes.length > data.flame[best].modes.length ? index : best), 0);
  choose(most, 0);
})();
