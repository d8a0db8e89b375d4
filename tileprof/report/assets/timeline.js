"use strict";
// The timeline of a block: a lane for each warp or warp group, a bar for each execution, as wide as the reader zooms.
(() => {
  const { data, count, element, tips } = report;
  const LANE = 30, BAR = 22, CUT = 64, AXIS = 20, CHARACTER = 6.7, MOST_ZOOM = 64;
  const SVG = document.querySelector("svg").namespaceURI; // the page names no address
  const PHASES = ["running", "starting", "waiting"];
  const shape = (tag, attributes, text) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const fitting = (text, width) => { const room = Math.floor((width - 8) / CHARACTER); return text.length <= room ? text : room > 3 ? text.slice(0, room - 1) + "…" : ""; };
  const figures = [];
  document.querySelectorAll("[data-timeline]").forEach((place) => {
    const figure = data.timelines[place.dataset.timeline], { operations, who, spans, gaps } = figure;
    const end = Math.max(...spans.map((span) => span[4] + span[5]), 1);
    const cut = gaps.reduce((sum, gap) => sum + gap[1], 0), height = who.length * LANE + AXIS;
    const describe = ([operation, worker, phase, execution, start, length]) => {
      const [label, , line] = operations[operation];
      return `${label}\n${who[worker]}${line ? ", line " + line : ""}, execution ${execution + 1}: ${PHASES[phase]}\n${count(length)} cycles, from ${count(start)} to ${count(start + length)}`;
    };
    const own = { spans, describe };
    figures.push(own);
    const names = element("ul", "lanes-who"), box = element("div", "lanes"), info = element("div", "info");
    names.setAttribute("aria-hidden", "true");
    who.forEach((one) => names.append(element("li", "", one)));
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", `Timeline, ${count(spans.length)} executions: arrow keys go from one to the next, plus and minus zoom`);
    info.setAttribute("aria-live", "polite");
    const key = element("ul", "key kinds");
    for (const kind of new Set(operations.map((one) => one[1]))) { const item = element("li", "", kind); item.prepend(element("i", "k-" + kind)); key.append(item); }
    const phases = [...new Set(spans.map((span) => span[2]))].sort();
    if (phases.length > 1) for (const phase of phases) { const item = element("li", "", PHASES[phase]); item.prepend(element("i", "phase " + PHASES[phase])); key.append(item); }
    const lanes = element("div", "lanes-grid");
    lanes.append(names, box);
    place.append(lanes, info, key);

    let zoom = 1, at = -1, scale = 1;
    const position = (time) => gaps.reduce((x, [start, length]) => (time >= start + length ? x - length * scale + CUT : time > start ? x - (time - start) * scale + CUT / 2 : x), time * scale);
    const draw = () => {
      const width = Math.max(320, box.clientWidth) * zoom;
      scale = Math.max(0.0001, (width - gaps.length * CUT - 2) / (end - cut));
      const svg = shape("svg", { width, height, "aria-hidden": "true" }), text = [];
      const step = [1, 2, 5].flatMap((digit) => Array.from({ length: 13 }, (_, power) => digit * 10 ** power)).sort((a, b) => a - b).find((each) => each * scale >= 90) ?? end;
      for (let tick = 0; tick <= end; tick += step) {
        if (gaps.some(([start, length]) => tick > start && tick < start + length)) { const [start, length] = gaps.find((gap) => tick < gap[0] + gap[1]); tick = Math.ceil((start + length) / step) * step - step; continue; }
        const x = position(tick), room = x + 7 * count(tick).length;
        svg.append(shape("path", { class: "tick", d: `M${x} 0V${who.length * LANE}` }));
        if (room < width && !gaps.some(([start]) => x <= position(start) && room > position(start))) text.push(shape("text", { class: "tick", x: x + 2, y: height - 5 }, count(tick)));
      }
      for (const [start, length] of gaps) {
        const x = position(start) + 3;
        svg.append(shape("rect", { class: "cut", x, y: 0, width: CUT - 6, height: who.length * LANE }));
        text.push(shape("text", { class: "tick", x: x + CUT / 2 - 3, y: height - 5, "text-anchor": "middle" }, "⋯"));
        svg.lastChild.dataset.tip = `${count(length)} cycles without a record: of an operation only the first executions are stamped`;
      }
      spans.forEach((span, index) => {
        const [operation, worker, phase, , start, length] = span, [label, kind, line] = operations[operation];
        const x = position(start), wide = Math.max(1, length * scale - (length * scale > 3 ? 1 : 0)), y = worker * LANE + 4;
        const bar = shape("rect", { class: `k-${kind} ${PHASES[phase]}`, x, y: phase === 1 ? y + BAR / 2 : y, width: wide, height: phase === 1 ? BAR / 2 : BAR });
        bar.dataset.span = index;
        svg.append(bar);
        const words = fitting(line ? `${line} ${label}` : label, wide) || (line ? fitting(String(line), wide + 4) : "");
        if (words && phase !== 1) text.push(shape("text", { x: x + 4, y: y + 15 }, words));
      });
      svg.append(...text);
      box.replaceChildren(svg);
      mark(false);
    };
    const mark = (show) => {
      for (const bar of box.querySelectorAll("rect[data-span]")) {
        bar.classList.toggle("at", Number(bar.dataset.span) === at);
        bar.classList.toggle("same", spans[bar.dataset.span][0] === spans[at]?.[0]);
      }
      info.textContent = at < 0 ? "Choose a bar, or go from one to the next by arrow keys; plus and minus zoom." : describe(spans[at]).replaceAll("\n", " · ");
      if (at < 0) return;
      const x = position(spans[at][4]);
      if (show && (x < box.scrollLeft || x > box.scrollLeft + box.clientWidth - 40)) box.scrollLeft = x - box.clientWidth / 3;
    };
    const change = (factor) => {
      const wanted = factor === 0 ? 1 : Math.min(MOST_ZOOM, Math.max(1, zoom * factor));
      const middle = (box.scrollLeft + box.clientWidth / 2) / zoom;
      zoom = wanted;
      draw();
      box.scrollLeft = middle * zoom - box.clientWidth / 2;
    };
    place.closest("article").querySelector(".zoom").addEventListener("click", (event) => {
      const button = event.target.closest("[data-zoom]");
      if (button) change({ in: 2, out: 0.5, whole: 0 }[button.dataset.zoom]);
    });
    const lane = (worker) => spans.map((span, index) => [span, index]).filter(([span]) => span[1] === worker).sort(([a], [b]) => a[4] - b[4]);
    const beside = (step) => { const row = lane(spans[at][1]), next = row[row.findIndex(([, index]) => index === at) + step]; return next?.[1]; };
    const across = (step) => {
      const middle = spans[at][4] + spans[at][5] / 2, row = lane(spans[at][1] + step);
      const away = ([span]) => Math.abs(span[4] + span[5] / 2 - middle);
      return row.length ? row.reduce((best, one) => (away(one) < away(best) ? one : best))[1] : undefined;
    };
    box.addEventListener("keydown", (event) => {
      const next = {
        ArrowRight: () => beside(1), ArrowLeft: () => beside(-1), ArrowDown: () => across(1), ArrowUp: () => across(-1),
        Home: () => lane(spans[at][1])[0][1], End: () => lane(spans[at][1]).at(-1)[1],
      }[event.key];
      const factor = { "+": 2, "=": 2, "-": 0.5, 0: 0 }[event.key];
      if ((!next && factor === undefined) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      if (next && at < 0) { at = lane(0)[0][1]; mark(true); }
      else if (next) { at = next() ?? at; mark(true); } else { change(factor); mark(true); }
    });
    box.addEventListener("click", (event) => { const bar = event.target.closest("[data-span]"); if (bar) { at = Number(bar.dataset.span); mark(false); } });
    let drawn = box.clientWidth;
    draw();
    new ResizeObserver(() => { if (box.clientWidth !== drawn) { drawn = box.clientWidth; draw(); } }).observe(box);
    own.place = place;
  });
  tips.set("[data-span]", (bar) => { const own = figures.find((one) => one.place.contains(bar)); return own.describe(own.spans[bar.dataset.span]); });
})();
