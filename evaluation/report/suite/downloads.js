// Downloads: the leaderboard, and the questions that the filters leave, as CSV and as LaTeX.

// As kbprobe.format.reading.neutral: no spreadsheet takes the cell for a formula.
const neutral = (text) => (/^'*[ \u00a0\u200b\ufeff]*[=+\-@\t\r\n＝＋－＠|%]/.test(text) ? `'${text}` : text);
const csvCell = (v) => (typeof v === "number" ? String(v) : `"${neutral(v ?? "").replaceAll('"', '""')}"`);
const csv = (head, rows) => [head, ...rows].map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");

const TEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}", "\n": " " };
const tex = (v) => String(v ?? "").replace(/[\\~^<>|\n#$%&_{}]/g, (c) => TEX[c] ?? `\\${c}`);

function latex(head, rows, environment) {
  const line = (cells) => `${cells.map(tex).join(" & ")} \\\\\n`;
  return `% Needs \\usepackage{booktabs${environment === "longtable" ? ",longtable" : ""}}\n`
    + `\\begin{${environment}}{l${"r".repeat(head.length - 1)}}\n\\toprule\n${line(head)}\\midrule\n`
    + `${rows.map(line).join("")}\\bottomrule\n\\end{${environment}}\n`;
}

function boardShown() {
  const board = byId(byId("view").value).querySelector("table");
  const cells = (row) => [...row.cells].map((cell, at) => (at ? cell.querySelector("b")?.textContent ?? cell.firstChild?.textContent ?? "" : cell.textContent).trim());
  const titles = [...board.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  return [titles, [...board.tBodies[0].rows, ...board.tFoot.rows].map(cells)];
}

function questionsShown() {
  const { model, other } = shown.wanted;
  const used = COLUMNS.filter((_, at) => at !== 3 || other !== "");
  const rows = inOrder(table.order().map(([column, dir]) => ({ column, dir }))).map((k) => {
    const [b, i] = [shown.at[k], shown.rows[k]];
    return [about.probes[b.probe], b.id[i], about.models[model], ...used.map(([, get]) => get(b, i, model, other))];
  });
  return [["probe", "id", "model", ...used.map(([name]) => name)], rows];
}

function download(name) {
  const [what, format] = name.split(".");
  const content = what === "questions" ? questionsShown() : format === "csv" ? [about.head, about.results] : boardShown();
  const text = format === "csv" ? csv(...content) : latex(...content, what === "questions" ? "longtable" : "tabular");
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([text], { type: "text/plain" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}
