"use strict";
// The flame graph: an icicle of boxes, wide as the figure of the reader's choice; drawn from columns, and only what can be seen.
(() => {
  const { $, data, strings, si, duration, count, percent, provenance, element, hideTip, tips } = report;
  if (!$("flame-panel")) return;
  const graph = $("flame-graph"), info = $("flame-info"), crumbs = $("flame-crumbs"), modes = $("flame-modes");
  const caseSelect = $("flame-case"), search = $("flame-search"), found = $("flame-found"), side = $("flame-side");
  const ROW = 30, LEAST = 1.5, GROUPED = 40;
  const state = { tree: null, mode: "", zoom: 0, focus: 0, base: false };

  // A tree in the page is shapes and cases; here it becomes columns, when it is first shown.
  const expand = (tree) => {
    if (tree.name) return tree;
    // Many cases are too narrow to be met side by side: then the cases of a kernel stand in a box of its name.
    const kernel = (one) => strings[one[0]].split("[")[0];
    const names = tree.cases.length > GROUPED ? [...new Set(tree.cases.map(kernel))] : [];
    const grouped = names.length > 1 ? names : [];
    const size = tree.cases.reduce((sum, one) => sum + tree.shapes[one[2]].k.length, 1 + grouped.length);
    const column = (fill) => new Array(size).fill(fill);
    tree.name = column(0); tree.kind = column(0); tree.detail = column(0); tree.file = column(0); tree.line = column(null); tree.parent = column(-1);
    tree.w = tree.modes.map(() => column(null));
    tree.source = tree.modes.map(() => column(0));
    tree.b = tree.base ? tree.modes.map(() => column(null)) : null;
    tree.flag = new Map();
    tree.children = Array.from({ length: size }, () => []);
    [tree.name[0], tree.detail[0]] = tree.root;
    tree.kind[0] = -1;
    tree.modes.forEach((_, m) => { tree.w[m][0] = tree.rootWeights[m]; tree.source[m][0] = tree.p[m]; if (tree.b) tree.b[m][0] = tree.base[m]; });
    let at = 1;
    tree.caseNode = [];
    const groups = new Map(grouped.map((name) => {
      const node = at++;
      tree.name[node] = strings.push(name) - 1; tree.detail[node] = tree.detail[0]; tree.kind[node] = -2; tree.file[node] = -1; tree.parent[node] = 0;
      tree.children[0].push(node);
      tree.modes.forEach((_, m) => { tree.source[m][node] = tree.p[m]; });
      return [name, node];
    }));
    tree.cases.forEach((one, position) => {
      const [name, detail, number, figures, sources, flags, bases] = one;
      const shape = tree.shapes[number], first = at, above = groups.get(kernel(one)) ?? 0;
      tree.caseNode[position] = first;
      for (let i = 0; i < shape.k.length; i++, at++) {
        tree.name[at] = i ? shape.n[i - 1] : name;
        tree.detail[at] = i ? shape.d[i - 1] : detail;
        tree.kind[at] = shape.k[i]; tree.file[at] = shape.f[i]; tree.line[at] = shape.l[i];
        tree.parent[at] = i ? first + shape.q[i - 1] : above;
        tree.children[tree.parent[at]].push(at);
      }
      shape.h.forEach((places, m) => places.forEach((place, i) => {
        tree.w[m][first + place] = figures[m][i];
        tree.source[m][first + place] = Array.isArray(sources[m]) ? sources[m][i] : sources[m];
        if (tree.b) tree.b[m][first + place] = bases[m][i];
      }));
      for (const [m, place, text] of flags) tree.flag.set(m + ":" + (first + place), text);
      if (above) tree.modes.forEach((_, m) => { for (const side of [tree.w, tree.b]) if (side && side[m][first] !== null) side[m][above] = (side[m][above] ?? 0) + side[m][first]; });
    });
    return tree;
  };
  data.flame.forEach((tree) => { tree.rootWeights = tree.w; });

  const label = (tree, node) => strings[tree.name[node]];
  const kind = (tree, node) => (tree.kind[node] === -1 ? "workload" : tree.kind[node] === -2 ? "group" : strings[tree.kind[node]]);
  const modeIndex = (tree, id) => tree.modes.findIndex((mode) => mode.id === id);
  const weight = (tree, node, id) => { const index = modeIndex(tree, id); return index < 0 ? null : expand(tree).w[index][node]; };
  const show = (value, unit) => (unit === "ns" ? duration(value) : si(value) + "\u00a0" + unit);
  const path = (tree, node) => { const all = []; for (let at = node; at >= 0; at = tree.parent[at]) all.unshift(at); return all; };
  const change = (tree, m, node) => { // against the base, in a comparison: [difference, words]
    const before = tree.b[m][node] ?? 0, now = tree.w[m][node] ?? 0;
    if (!before) return [now ? Infinity : 0, now ? "new" : "nowhere"];
    const share = now / before - 1;
    return [share, now ? (share > 0 ? "+" : share < 0 ? "\u2212" : "±") + percent(Math.abs(share)) : "gone"];
  };

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
      const against = tree.b ? `, ${change(tree, index, node)[1]}` : "";
      lines.push(`${mode.label.toLowerCase()}: ${mode.unit === "ns" ? duration(value) : count(value)} (${[mode.kind, ...shares].filter(Boolean).join(", ")})${against}`);
    });
    return lines.join("\n");
  };
  tips.set("#flame-graph [data-node]", (box) => describe(state.tree, Number(box.dataset.node)));

  const inform = (tree, node) => {
    const index = modeIndex(tree, state.mode), mode = tree.modes[index];
    info.replaceChildren();
    if (!mode) return;
    const value = tree.w[index][node];
    info.append(element("b", "", label(tree, node)), " ");
    const file = strings[tree.file[node]], line = tree.line[node];
    if (node && file && line) info.append(`${file}:${line} `);
    info.append("· ");
    if (value === null) info.append(`${mode.label.toLowerCase()} not known here`);
    else {
      const whole = tree.w[index][0];
      info.append(element("b", "", show(value, mode.unit)), whole ? ` · ${percent(value / whole)} of all` : "");
      const inner = tree.children[node].reduce((sum, child) => sum + (tree.w[index][child] ?? 0), 0);
      if (tree.children[node].length && value > inner) info.append(` · ${percent((value - inner) / value)} its own`);
      if (tree.b) info.append(` · ${show(tree.b[index][node] ?? 0, mode.unit)} in the base, ${change(tree, index, node)[1]}`);
      info.append(` · ${provenance(tree.source[index][node])}`);
    }
    const flag = tree.flag.get(index + ":" + node);
    if (flag) info.append(` · flagged: ${flag}`);
    const detail = strings[tree.detail[node]];
    if (detail) info.append(element("br"), element("code", "", detail));
  };

  // What the reader looks for: text, or a regular expression between slashes; one that is none matches nothing and is no error.
  const matcher = () => {
    const text = search.value.trim();
    search.removeAttribute("aria-invalid");
    if (!text) return null;
    const pattern = /^\/(.+)\/$/.exec(text), known = new Map();
    let test = (name) => name.toLowerCase().includes(text.toLowerCase());
    if (pattern) {
      try { const expression = new RegExp(pattern[1], "i"); test = (name) => expression.test(name); }
      catch { search.setAttribute("aria-invalid", "true"); test = () => false; }
    }
    const matches = (index) => { if (!known.has(index)) known.set(index, test(strings[index] ?? "")); return known.get(index); };
    return (tree, node) => matches(tree.name[node]) || matches(tree.detail[node]);
  };
  const summarise = (tree, index, matches) => { // topmost matches only, so that nothing is counted twice
    if (!matches) { found.textContent = ""; return; }
    if (search.getAttribute("aria-invalid")) { found.textContent = "not a regular expression"; return; }
    let boxes = 0, sum = 0;
    const stack = [state.zoom];
    while (stack.length) {
      const node = stack.pop();
      if (matches(tree, node)) { boxes++; sum += tree.w[index][node] ?? 0; } else stack.push(...tree.children[node]);
    }
    const whole = tree.w[index][state.zoom];
    found.textContent = boxes ? `${count(boxes)} found${whole ? ", " + percent(sum / whole) : ""}` : "nothing found";
  };

  const tint = (box, tree, index, node) => {
    const [share, word] = change(tree, index, node);
    const step = share === 0 || word === "nowhere" ? 0 : Math.min(4, 1 + Math.floor(Math.min(Math.abs(share), 1) / 0.1));
    box.className = "delta " + (step ? (share > 0 ? "worse" : "better") + step : "equal");
    return word;
  };

  const draw = (keepFocus) => {
    const tree = state.tree, index = modeIndex(tree, state.mode);
    graph.replaceChildren();
    found.textContent = "";
    const column = index < 0 ? null : state.base && tree.b ? tree.b[index] : tree.w[index];
    const matches = matcher(), width = graph.clientWidth, kinds = new Set(), pieces = document.createDocumentFragment();
    let focusable = null;
    if (!column || !column[state.zoom]) {
      graph.style.height = ROW + "px";
      graph.removeAttribute("role");
      graph.append(element("p", "", "No figure of this kind for this choice: it was not measured or is not known."));
      info.replaceChildren();
    } else {
      graph.setAttribute("role", "tree");
      const above = path(tree, state.zoom).slice(0, -1), unit = tree.modes[index].unit;
      let deepest = 0;
      const place = (box, left, share, depth) => {
        box.style.left = left * 100 + "%";
        box.style.width = share * 100 + "%";
        box.style.top = depth * ROW + "px";
        deepest = Math.max(deepest, depth);
        pieces.append(box);
      };
      const add = (node, left, share, depth, ancestor) => {
        const box = element("div", "k-" + kind(tree, node), width * share > 34 ? label(tree, node) : "");
        const value = tree.w[index][node], word = tree.b ? tint(box, tree, index, node) : "";
        if (width * share > 120 && !ancestor) box.append(" ", element("small", "", value === null ? "" : show(value, unit) + (word ? " " + word : "")));
        if (width * share < 16) box.classList.add("slim");
        box.setAttribute("role", "treeitem");
        box.setAttribute("aria-level", depth + 1);
        box.setAttribute("aria-label", `${label(tree, node)} ${value === null ? "not known" : show(value, unit)}${word ? " " + word : ""}`);
        box.tabIndex = node === state.focus ? 0 : -1;
        if (node === state.focus) focusable = box;
        box.dataset.node = node;
        box.dataset.name = label(tree, node);
        if (ancestor) box.classList.add("dim");
        if (matches) box.classList.add(matches(tree, node) ? "hit" : "dim");
        kinds.add(kind(tree, node));
        place(box, left, share, depth);
      };
      const more = (number, left, share, depth) => {
        const box = element("div", "more", width * share > 60 ? `${count(number)} more` : "");
        box.dataset.tip = `${count(number)} more, each too narrow to be drawn: zoom in, or search`;
        box.setAttribute("role", "none");
        place(box, left, share, depth);
      };
      above.forEach((node, depth) => add(node, 0, 1, depth, true));
      const stack = [[state.zoom, 0, 1, above.length]];
      while (stack.length) {
        const [node, left, share, depth] = stack.pop();
        add(node, left, share, depth, false);
        let at = left, small = 0, smallAt = 0;
        const flush = () => { if (small && (at - smallAt) * width >= LEAST) more(small, smallAt, at - smallAt, depth + 1); small = 0; };
        for (const child of tree.children[node]) {
          if (!column[child]) continue;
          const part = (column[child] / column[node]) * share;
          if (part * width >= LEAST) { flush(); stack.push([child, at, part, depth + 1]); }
          else { if (!small) smallAt = at; small++; }
          at += part;
        }
        flush();
      }
      graph.style.height = (deepest + 1) * ROW + "px";
      graph.append(pieces);
      if (!focusable) { state.focus = state.zoom; focusable = at(state.zoom); if (focusable) focusable.tabIndex = 0; }
      inform(tree, state.focus);
      summarise(tree, index, matches);
      if (keepFocus) focusable?.focus();
    }
    crumbs.replaceChildren();
    path(tree, state.zoom).forEach((node, depth, all) => {
      if (depth) crumbs.append("›");
      if (depth === all.length - 1) crumbs.append(element("b", "", label(tree, node)));
      else { const button = element("button", "", label(tree, node)); button.type = "button"; button.addEventListener("click", () => zoom(node)); crumbs.append(button); }
    });
    const key = $("flame-key");
    key.replaceChildren();
    if (!tree.b) for (const one of kinds) { const item = element("li", "", one); item.prepend(element("i", "k-" + one)); key.append(item); }
    else for (const [name, word] of [["better3", "less than in the base"], ["equal", "equal"], ["worse3", "more than in the base"]]) { const item = element("li", "", word); item.prepend(element("i", name)); key.append(item); }
    const inside = path(tree, state.zoom).map((node) => tree.caseNode.indexOf(node)).find((position) => position >= 0);
    caseSelect.value = data.flame.indexOf(tree) + ":" + (inside === undefined ? 0 : "c" + inside);
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
    const tree = expand(data.flame[treeIndex]);
    state.tree = tree;
    if (modeIndex(tree, state.mode) < 0 || !weight(tree, node, state.mode)) {
      // Executed instructions say most; time comes first only where operations have times of their own.
      // In a comparison, what has changed most says most.
      const apart = (id) => Math.abs(change(tree, modeIndex(tree, id), node)[0]);
      const changed = tree.b ? tree.modes.map((mode) => mode.id).filter((id) => id !== "time" && weight(tree, node, id) && apart(id) < Infinity) : [];
      const most = changed.reduce((best, id) => (best === null || apart(id) > apart(best) ? id : best), null);
      const wanted = most !== null && apart(most) > 0 ? most : ["cycles", "executed", "executed_measured", "time", "static"].find((id) => weight(tree, node, id));
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
    tree.cases.forEach(([name], position) => option("c" + position, `${strings[name]} @ ${tree.target}`));
    caseSelect.append(group);
  });
  caseSelect.addEventListener("change", () => { const [tree, which] = caseSelect.value.split(":"); choose(Number(tree), which === "0" ? 0 : expand(data.flame[tree]).caseNode[which.slice(1)]); });
  search.addEventListener("input", () => draw(false));
  if (side) side.addEventListener("change", () => { state.base = side.value === "base"; draw(false); });
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
  if (data.flame.length) choose(most, 0);
})();
