// Downloads: the leaderboard, and the questions that the filters leave, as CSV and as LaTeX.

// As kbprobe.format.reading.neutral: no spreadsheet takes the cell for a formula.
const FORMULA = /^'*[ \u00a0\u200b\ufeff]*[=+\-@\t\r\n＝＋－＠|%]/;
const neutral = (text) => (FORMULA.test(text) ? `'${text}` : text);
const quoted = (text) => `"${neutral(text).replaceAll('"', '""')}"`;
const csvLine = (cells) => `${cells.map((v) => (typeof v === "number" ? v : quoted(v ?? ""))).join(",")}\r\n`;
const csv = (head, rows) => [head, ...rows].map(csvLine).join("");

const TEX = {
  "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}",
  "<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}", "\n": " ",
};
const tex = (v) => String(v ?? "").replace(/[\\~^<>|\n#$%&_{}]/g, (c) => TEX[c] ?? `\\${c}`);

function latex(head, rows, environment, columns) {
  const line = (cells) => `${cells.map(tex).join(" & ")} \\\\\n`;
  return `% Needs \\usepackage{booktabs,longtable}\n\\begin{${environment}}{${columns}}\n\\toprule\n`
    + `${line(head)}\\midrule\n${rows.map(line).join("")}\\bottomrule\n\\end{${environment}}\n`;
}

function boardShown() {
  const text = (cell, at) => (at ? number(cell).replace("%", "") : cell.textContent.trim());
  const titles = [...board.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const rows = [...board.tBodies[0].rows, ...board.tFoot.rows];
  return [titles, rows.map((row) => [...row.cells].map(text))];
}

function questionsShown() {
  const { model, other } = shown.wanted;
  const used = COLUMNS.filter((_, at) => at !== 3 || other !== "");
  const order = table.order().map(([column, dir]) => ({ column, dir }));
  const rows = inOrder(order).map((k) => {
    const [b, i] = [shown.at[k], shown.rows[k]];
    const models = [about.models[model], ...(other === "" ? [] : [about.models[other]])];
    return [about.probes[b.probe], b.id[i], ...models, ...used.map(([, get]) => get(b, i, model, other))];
  });
  const head = ["probe", "id", "model", ...(other === "" ? [] : ["other_model"])];
  return [[...head, ...used.map(([name]) => name)], rows];
}

const DOWNLOADS = {
  "leaderboard.csv": () => csv(about.head, about.results),
  "leaderboard.tex": () => {
    const [head, rows] = boardShown();
    return latex(head, rows, "tabular", `l${"r".repeat(head.length - 1)}`);
  },
  "questions.csv": () => csv(...questionsShown()),
  "questions.tex": () => {
    const [head, rows] = questionsShown();
    return latex(head, rows, "longtable", "l".repeat(head.length));
  },
};

function download(name) {
  const href = URL.createObjectURL(new Blob([DOWNLOADS[name]()], { type: "text/plain" }));
  element("a", { download: name, href }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60000);
}
