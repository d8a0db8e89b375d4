"use strict";
// Generated code and assembly: under the author's line on request, and two cases side by side.
(() => {
  const { $, data, count, element } = report;
  const code = data.code;
  if (!code || !Object.keys(code.cases).length) return;
  const opened = new Map();
  // A listing is deflated in the page; it is unpacked when it is first looked at: [[text, author's line], ...].
  const linesOf = (key, part) => {
    const packed = code.cases[key]?.[part], name = key + part;
    if (!packed) return Promise.resolve(null);
    if (!opened.has(name)) {
      opened.set(name, report.unpack(packed).then(({ text, runs }) => {
        const lines = text.split("\n"), owners = runs.flatMap(([line, number]) => new Array(number).fill(line));
        return lines.map((line, index) => [line, owners[index]]);
      }));
    }
    return opened.get(name);
  };

  // ---- under a line of the author's --------------------------------------------------------------------------------
  const PARTS = [["generated", "generated code"], ["assembly", "assembly"]], MOST = 200;
  const expand = async (row, table) => {
    const next = row.nextElementSibling, button = row.querySelector(".open");
    if (next?.classList.contains("below")) { next.remove(); button.setAttribute("aria-expanded", "false"); return; }
    const key = document.querySelector(`.source-case[data-file="${table.dataset.file}"]`).value, line = Number(row.dataset.line);
    const below = element("tr", "below"), cell = element("td");
    cell.colSpan = 20;
    for (const [part, title] of PARTS) {
      const lines = (await linesOf(key, part))?.filter(([, owner]) => owner === line);
      if (!lines) continue;
      cell.append(element("h4", "", `${title}, ${count(lines.length)} ${lines.length === 1 ? "line" : "lines"}`));
      const block = element("pre", "", lines.slice(0, MOST).map(([text]) => text).join("\n") + (lines.length > MOST ? `\n… ${count(lines.length - MOST)} more` : ""));
      block.tabIndex = 0;
      cell.append(block);
    }
    if (!cell.children.length) cell.append(element("p", "", "The code of this case is not in the page; its bundle has it."));
    below.append(cell);
    row.after(below);
    button.setAttribute("aria-expanded", "true");
  };
  for (const table of document.querySelectorAll(".src")) {
    for (const row of table.tBodies[0].rows) {
      if (!row.classList.contains("on")) continue;
      const number = row.cells[0];
      row.dataset.line = number.textContent;
      const button = element("button", "open", number.textContent);
      button.type = "button";
      button.setAttribute("aria-expanded", "false");
      button.setAttribute("aria-label", `Line ${number.textContent}: show generated code and assembly`);
      button.addEventListener("click", () => expand(row, table));
      number.replaceChildren(button);
    }
    document.querySelector(`.source-case[data-file="${table.dataset.file}"]`)?.addEventListener("change", () => {
      for (const below of table.querySelectorAll(".below")) below.remove();
      for (const button of table.querySelectorAll(".open")) button.setAttribute("aria-expanded", "false");
    });
  }

  // ---- two cases side by side --------------------------------------------------------------------------------------
  const panel = $("code-panel");
  if (!panel) return;
  panel.hidden = false;
  const sides = [...panel.querySelectorAll(".code-side")], part = $("code-part");
  if (!Object.values(code.cases).some((own) => part.value in own)) part.value = "generated";
  const draw = async (side) => {
    const select = side.querySelector("select"), list = side.querySelector("ol");
    const packed = await linesOf(select.value, part.value), lines = packed ?? [];
    const pieces = document.createDocumentFragment();
    for (const [text, owner] of lines) {
      const item = element("li", owner === null ? "" : "own s" + (owner % 8), text);
      if (owner !== null) { item.dataset.line = owner; item.dataset.mark = owner; }
      pieces.append(item);
    }
    list.replaceChildren(pieces);
    side.querySelector(".found").textContent = packed ? `${count(lines.length)} lines` : "not in the page; the bundle has it, where there is such code";
  };
  // The line under the pointer, or the one chosen by keyboard, is marked on both sides, and brought into view on the other.
  let marked = null;
  const mark = (line, from) => {
    if (line === marked) return;
    marked = line;
    for (const item of panel.querySelectorAll("li.marked")) item.classList.remove("marked");
    if (line === null) return;
    for (const side of sides) {
      const items = [...side.querySelectorAll(`li[data-line="${line}"]`)];
      items.forEach((item) => item.classList.add("marked"));
      const box = side.querySelector("ol");
      if (items.length && side !== from) box.scrollTop = items[0].offsetTop - box.clientHeight / 3;
    }
  };
  sides.forEach((side, index) => {
    const select = side.querySelector("select");
    const known = [...select.options].map((option) => option.value).filter((key) => part.value in code.cases[key]);
    select.value = known[Math.min(index, known.length - 1)] ?? select.value;
    select.addEventListener("change", () => draw(side));
    side.querySelector("ol").addEventListener("click", (event) => { const item = event.target.closest("li[data-line]"); mark(item ? item.dataset.line : null, side); });
  });
  $("code-line").addEventListener("input", (event) => mark(event.target.value || null, null));
  part.addEventListener("change", () => sides.forEach(draw));
  const whenSeen = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) { whenSeen.disconnect(); sides.forEach(draw); } });
  whenSeen.observe(panel);
})();
