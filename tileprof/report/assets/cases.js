"use strict";
// All cases: a table that sorts, filters and copies, and small plots of what tile sizes and stages do.
(() => {
  const { $, data, strings, si, duration, count, percent, element, tips, copy } = report;
  const panel = $("cases-panel"), cases = data.cases;
  if (!panel || !cases) return;
  const body = $("cases-body"), head = $("cases-head"), filter = $("cases-filter"), shownText = $("cases-shown"), moreButton = $("cases-more");
  const plots = $("cases-plots"), axisSelect = $("cases-axis");
  const PAGE = 100, SERIES = 8;
  const PLOTTED = new Set(["time", "registers", "spills", "shared", "occupancy", "conflicts"]);
  const MARKS = ["", "Pareto-best", "fastest"];
  const write = { ns: duration, count: (v) => count(v), share: percent, rate: (v) => si(v) + "FLOP/s" };
  const size = cases.id.length;
  const word = (axis, row) => { const value = axis.values[row]; return value === null ? null : axis.words ? strings[value] : value; };
  const columns = [
    ...cases.axes.map((axis) => ({ label: axis.name, numeric: !axis.words, get: (row) => word(axis, row), text: (v) => String(v) })),
    { label: "status", numeric: false, status: true, get: (row) => strings[cases.status[row]], text: String },
    { label: "best", numeric: false, get: (row) => MARKS[cases.best[row]] || null, text: String },
    ...cases.quantities.map((q) => ({ label: q.label, numeric: true, figure: true, lower: q.lower, get: (row) => q.values[row], text: write[q.form] })),
  ];
  const everything = Array.from({ length: size }, (_, row) => [strings[cases.id[row]], strings[cases.status[row]], MARKS[cases.best[row]], ...cases.axes.map((a) => `${a.name}=${word(a, row)}`)].join(" ").toLowerCase());
  const time = cases.quantities.find((q) => q.id === "time");
  const state = { sort: time ? columns.findIndex((c) => c.label === time.label) : -1, down: false, limit: PAGE };

  const chosen = () => {
    const tokens = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [];
    for (let row = 0; row < size; row++) if (tokens.every((token) => everything[row].includes(token))) rows.push(row);
    if (state.sort >= 0) {
      const { get } = columns[state.sort], sign = state.down ? -1 : 1;
      rows.sort((a, b) => { // what is not known comes last, whichever way
        const x = get(a), y = get(b);
        if (x === null || y === null) return (x === null) - (y === null) || a - b;
        return (x < y ? -sign : x > y ? sign : 0) || a - b;
      });
    }
    return rows;
  };

  const drawTable = (rows) => {
    head.replaceChildren(...columns.map((column, index) => {
      const cell = element("th", column.numeric ? "n" : "");
      cell.scope = "col";
      cell.setAttribute("aria-sort", index !== state.sort ? "none" : state.down ? "descending" : "ascending");
      const button = element("button", "sort", column.label);
      button.type = "button";
      button.append(element("span", "arrow", index !== state.sort ? "" : state.down ? "▼" : "▲"));
      button.addEventListener("click", () => {
        state.down = state.sort === index ? !state.down : false;
        state.sort = index;
        draw();
        head.children[index].firstChild.focus();
      });
      cell.append(button);
      return cell;
    }));
    const lines = document.createDocumentFragment();
    for (const row of rows.slice(0, state.limit)) {
      const line = element("tr", cases.best[row] ? "best" + cases.best[row] : "");
      line.title = strings[cases.id[row]];
      for (const column of columns) {
        const value = column.get(row);
        if (column.status) { const cell = element("td"); cell.append(element("span", "st " + strings[cases.tone[row]], value)); line.append(cell); continue; }
        line.append(element("td", (column.numeric ? "n" : "") + (value === null && column.figure ? " na" : ""), value === null ? (column.figure ? "—" : "") : column.text(value)));
      }
      lines.append(line);
    }
    body.replaceChildren(lines);
    const visible = Math.min(rows.length, state.limit);
    shownText.textContent = `${count(visible)} of ${count(rows.length)}${rows.length < size ? ` (${count(size)} in all)` : ""}`;
    moreButton.hidden = visible >= rows.length;
  };

  // ---- plots: one a quantity, over a parameter; a line joins cases that differ in nothing else ----------------------
  const axes = cases.axes.filter((axis) => !axis.words && new Set(axis.values.filter((v) => v !== null)).size > 1);
  const NS = document.querySelector("svg").namespaceURI;
  const svg = (tag, attributes) => { const made = document.createElementNS(NS, tag); for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value); return made; };
  const drawPlots = (rows) => {
    plots.replaceChildren();
    const axis = axes[axisSelect.value];
    if (!axis) return;
    const lines = new Map();
    for (const row of rows) {
      if (axis.values[row] === null) continue;
      const key = cases.axes.filter((other) => other !== axis).map((other) => { const value = word(other, row); return value === null ? "" : other.words ? value : `${other.name}=${value}`; }).filter(Boolean).join(", ");
      if (!lines.has(key)) lines.set(key, []);
      lines.get(key).push(row);
    }
    const series = [...lines].filter(([, own]) => new Set(own.map((row) => axis.values[row])).size > 1);
    const best = (own) => Math.min(...own.map((row) => time?.values[row] ?? Infinity));
    series.sort((a, b) => best(a[1]) - best(b[1]));
    const kept = series.slice(0, SERIES);
    const ticks = [...new Set(kept.flatMap(([, own]) => own.map((row) => axis.values[row])))].sort((a, b) => a - b);
    if (!kept.length) { plots.append(element("p", "empty", `No two of these cases differ in ${axis.name} alone.`)); return; }
    for (const quantity of cases.quantities) { // what is nothing everywhere needs no picture
      if (!PLOTTED.has(quantity.id) || !kept.some(([, own]) => own.some((row) => quantity.values[row]))) continue;
      plots.append(plot(quantity, axis, kept, ticks));
    }
    const key = element("ul", "key plotkey");
    kept.forEach(([name], index) => { const item = element("li", "", name); item.prepend(element("i", "line s" + index)); key.append(item); });
    if (series.length > kept.length) key.append(element("li", "", `and ${count(series.length - kept.length)} slower lines that are not drawn: filter to see them`));
    plots.append(key);
  };
  const plot = (quantity, axis, series, ticks) => {
    const W = 270, H = 170, left = 52, right = 12, top = 12, bottom = 26;
    const values = series.flatMap(([, own]) => own.map((row) => quantity.values[row])).filter((v) => v !== null);
    const high = Math.max(...values) || 1, x = (value) => left + (ticks.length < 2 ? 0.5 : ticks.indexOf(value) / (ticks.length - 1)) * (W - left - right), y = (value) => H - bottom - (value / high) * (H - top - bottom);
    const figure = element("figure", "plot"), picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "group", "aria-label": `${quantity.label} over ${axis.name}` });
    figure.append(element("figcaption", "", quantity.label));
    for (const part of [0, 0.5, 1]) {
      picture.append(svg("path", { class: "grid", d: `M${left} ${y(high * part)}H${W - right}` }));
      const text = svg("text", { x: left - 6, y: y(high * part) + 4, "text-anchor": "end" });
      text.textContent = write[quantity.form === "count" ? "rate" : quantity.form](high * part).replace("FLOP/s", "");
      picture.append(text);
    }
    for (const tick of ticks) { const text = svg("text", { x: x(tick), y: H - 8, "text-anchor": "middle" }); text.textContent = tick; picture.append(text); }
    series.forEach(([name, own], index) => {
      const points = own.filter((row) => quantity.values[row] !== null).sort((a, b) => axis.values[a] - axis.values[b]);
      if (!points.length) return;
      picture.append(svg("path", { class: "line s" + index, d: points.map((row, i) => `${i ? "L" : "M"}${x(axis.values[row]).toFixed(1)} ${y(quantity.values[row]).toFixed(1)}`).join("") }));
      for (const row of points) {
        const dot = svg("circle", { class: `dot s${index}${cases.best[row] ? " best" + cases.best[row] : ""}`, cx: x(axis.values[row]), cy: y(quantity.values[row]), r: cases.best[row] === 2 ? 5 : 3.5 });
        dot.dataset.tip = `${strings[cases.id[row]]}\n${quantity.label}: ${write[quantity.form](quantity.values[row])}${cases.best[row] ? "\n" + MARKS[cases.best[row]] : ""}`;
        picture.append(dot);
      }
    });
    figure.append(picture);
    return figure;
  };

  const draw = () => { const rows = chosen(); drawTable(rows); drawPlots(rows); };
  axes.forEach((axis, index) => { const option = element("option", "", axis.name); option.value = index; axisSelect.append(option); });
  const wanted = axes.findIndex((axis) => axis.name === "num_stages");
  if (axes.length) axisSelect.value = Math.max(0, wanted); else axisSelect.closest("label").hidden = true;
  filter.addEventListener("input", () => { state.limit = PAGE; draw(); });
  axisSelect.addEventListener("change", draw);
  moreButton.addEventListener("click", () => { state.limit += PAGE; draw(); });
  $("cases-copy").addEventListener("click", (event) => {
    const quote = (value) => { const text = value === null ? "" : String(value); return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
    const lines = [["case", ...columns.map((column) => column.label)], ...chosen().map((row) => [strings[cases.id[row]], ...columns.map((column) => column.get(row))])];
    copy(event.currentTarget, lines.map((line) => line.map(quote).join(",")).join("\n") + "\n");
  });
  draw();
})();
