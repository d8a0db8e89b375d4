"use strict";
(() => {
  const { data, si, count, heat } = report;
  // ---- source: figures of the chosen case -------------------------------------------------------------------------
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
      if (row.classList.contains("below")) continue;
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
    // In view first: the operations, which often stand far below the line of the kernel itself.
    const second = Math.min(...chosen.lines.filter((line) => line > first), Infinity), wanted = second > first + 12 && second < Infinity ? second : first;
    const row = [...table.tBodies[0].rows].find((candidate) => Number(candidate.cells[0].textContent) === wanted);
    if (row) table.closest(".code").scrollTop = Math.max(0, row.offsetTop - 9 * row.offsetHeight);
  };
  for (const select of document.querySelectorAll(".source-case")) {
    const table = document.querySelector(`.src[data-file="${select.dataset.file}"]`);
    select.addEventListener("change", () => showSource(table, Number(select.dataset.file), select.value));
    showSource(table, Number(select.dataset.file), select.value);
  }
})();
