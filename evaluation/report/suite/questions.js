// The browser of questions: filters over columns of numbers, and a table of one page of rows.

const form = document.getElementById("filter");
const blocks = new Map(); // of each probe that was looked at
let shown = { at: [], rows: [] }; // the selection: block and row of each question
let sorted; // the same, in the order of the table
let table;

async function block(probe) {
  if (!blocks.has(probe)) {
    const held = await unpack(`packed-${probe}`);
    held.probe = probe;
    held.size = held.id.length;
    held.starts = new Int32Array(held.size + 1);
    for (let i = 0; i < held.size; i++) held.starts[i + 1] = held.starts[i] + (held.width[i] ?? held.width);
    held.right = new Uint16Array(held.size);
    for (const { picked } of Object.values(held.answers)) {
      for (let i = 0; i < held.size; i++) held.right[i] += picked[i] === held.gold[i];
    }
    blocks.set(probe, held);
  }
  return blocks.get(probe);
}

const question = (b, i) => b.question.values[b.question.codes[i]];
const choice = (b, i, at) => (at < 0 ? "" : b.choices.values[b.choices.codes[b.starts[i] + at]]);
const value = (b, i, name) => b.columns[name] && (b.columns[name].values[b.columns[name].codes[i]] ?? null);
const picked = (b, i, model) => b.answers[model]?.picked[i] ?? -1;
const isRight = (b, i, model) => picked(b, i, model) === b.gold[i];

const KINDS = {
  any: ["all answers", () => true],
  right: ["right", (b, i, m) => isRight(b, i, m)],
  wrong: ["wrong", (b, i, m) => picked(b, i, m) >= 0 && !isRight(b, i, m)],
  aside: ["set aside", (b, i, m) => picked(b, i, m) < 0],
  differ: ["disagreements", (b, i, m, o) => picked(b, i, m) !== picked(b, i, o)],
  only: ["first model right, other not", (b, i, m, o) => isRight(b, i, m) && !isRight(b, i, o)],
  other: ["other model right, first not", (b, i, m, o) => !isRight(b, i, m) && isRight(b, i, o)],
  neither: ["both wrong", (b, i, m, o) => !isRight(b, i, m) && !isRight(b, i, o)],
};

function matching(b, asked) {
  const test = KINDS[asked.show][1];
  const contains = (values) => values.map((text) => text.toLowerCase().includes(asked.text));
  const questions = asked.text && contains(b.question.values);
  const choices = asked.text && contains(b.choices.values);
  const found = [];
  for (let i = 0; i < b.size; i++) {
    if (!b.answers[asked.model] || (asked.other && !b.answers[asked.other])) break;
    if (asked.hops && named(value(b, i, "hops")) !== asked.hops) continue;
    if (asked.family && named(value(b, i, "distractor_family")) !== asked.family) continue;
    if (!test(b, i, asked.model, asked.other)) continue;
    if (asked.text && !questions[b.question.codes[i]]) {
      let hit = false;
      for (let at = b.starts[i]; at < b.starts[i + 1] && !hit; at++) hit = choices[b.choices.codes[at]];
      if (!hit) continue;
    }
    found.push(i);
  }
  return found;
}

const COLUMNS = [
  ["question", question],
  ["right answer", (b, i) => choice(b, i, b.gold[i])],
  ["choice", (b, i, m) => choice(b, i, picked(b, i, m))],
  ["other's choice", (b, i, m, o) => choice(b, i, picked(b, i, o))],
  ["share", (b, i, m) => (picked(b, i, m) < 0 ? "" : b.answers[m].share[i])],
  ["hops", (b, i) => value(b, i, "hops") ?? ""],
  ["distractors", (b, i) => value(b, i, "distractor_family") ?? ""],
  ["models right", (b, i) => b.right[i]],
];

const asked = () => {
  const given = Object.fromEntries(new FormData(form));
  if (!Object.hasOwn(KINDS, given.show) || (given.other === "" && KINDS[given.show][1].length > 3)) given.show = "any";
  return { ...given, text: given.text.toLowerCase() };
};

async function select() {
  byId("rows").classList.add("stale");
  const wanted = asked();
  const probes = wanted.probe === "" ? about.probes.map((_, i) => i) : [Number(wanted.probe)];
  const loaded = [];
  for (const probe of probes) loaded.push(await block(probe));
  const distinct = (name) => [...new Set(loaded.flatMap((b) => (b.columns[name] ? b.columns[name].values : [])))];
  const options = (name) => [["", "any"], ...distinct(name).map(named).sort((a, b) => a.localeCompare(b, "en", { numeric: true })).map((v) => [v, v])];
  setOptions(byId("hops"), options("hops"));
  setOptions(byId("family"), options("distractor_family"));
  setOptions(byId("show"), Object.entries(KINDS).filter(([, [, test]]) => wanted.other !== "" || test.length < 4).map(([key, [name]]) => [key, name]));
  Object.assign(wanted, asked());
  shown = { at: [], rows: [], wanted };
  for (const b of loaded) {
    for (const row of matching(b, wanted)) {
      shown.at.push(b);
      shown.rows.push(row);
    }
  }
  sorted = undefined;
  const total = loaded.reduce((sum, b) => sum + b.total, 0);
  const held = loaded.reduce((sum, b) => sum + b.size, 0);
  const sample = held < total ? ` The page holds a sample of ${held.toLocaleString("en")} of them.` : "";
  byId("found").textContent = `${shown.rows.length.toLocaleString("en")} of ${total.toLocaleString("en")} questions.${sample}`;
  const state = Object.entries({ ...wanted, text: form.elements.text.value }).filter(([, v]) => v !== "");
  if (performance.getEntriesByName("rows").length) history.replaceState(null, "", `#${new URLSearchParams(state)}`);
  table.column(3).visible(wanted.other !== "", false);
  table.draw();
  byId("rows").classList.remove("stale");
}

function inOrder(order) {
  const key = JSON.stringify(order);
  if (sorted?.key === key) return sorted.rows;
  const rows = Array.from(shown.rows, (_, k) => k);
  if (order.length) {
    const [{ column, dir }] = order;
    const keys = rows.map((k) => COLUMNS[column][1](shown.at[k], shown.rows[k], shown.wanted.model, shown.wanted.other));
    const sign = dir === "desc" ? -1 : 1;
    rows.sort((a, b) => sign * (keys[a] > keys[b]) - sign * (keys[a] < keys[b]) || a - b);
  }
  sorted = { key, rows };
  return rows;
}

function fillCell(cell, k, column) {
  const b = shown.at[k];
  const i = shown.rows[k];
  const { model, other } = shown.wanted;
  const text = element("bdi", { dir: "auto" }, String(COLUMNS[column][1](b, i, model, other)));
  if (column === 0) {
    const button = element("button", { type: "button", class: "open", "aria-expanded": "false" }, text);
    button.addEventListener("click", () => toggle(button, b, i));
    cell.replaceChildren(button);
    return;
  }
  const by = { 2: model, 3: other }[column];
  cell.dataset.label = table.column(column).header().textContent;
  cell.className = column > 3 ? (column === 6 ? "" : "n") : "words";
  if (by !== undefined) cell.classList.add("chosen", isRight(b, i, by) ? "right" : "wrong");
  const mark = by === undefined ? "" : picked(b, i, by) < 0 ? "set aside" : isRight(b, i, by) ? "✓ " : "✗ ";
  const unit = { 4: "%", 7: ` of ${Object.keys(b.answers).length}` }[column] ?? "";
  cell.replaceChildren(mark, text, text.textContent === "" ? "" : unit);
}

function toggle(button, b, i) {
  const row = table.row(button.closest("tr"));
  const open = !row.child.isShown();
  button.setAttribute("aria-expanded", open);
  if (open) row.child(details(b, i), "more").show();
  else row.child.hide();
}

function details(b, i) {
  const list = element("ol", { type: "A" });
  for (let at = 0; at < b.starts[i + 1] - b.starts[i]; at++) {
    const by = Object.keys(b.answers).filter((m) => picked(b, i, m) === at).map((m) => `${about.models[m]} (${b.answers[m].share[i]}%)`);
    const gold = at === b.gold[i];
    list.append(element("li", gold ? { class: "gold" } : {}, element("bdi", { dir: "auto" }, choice(b, i, at)),
      gold ? " ✓ right answer" : "", element("small", {}, by.length ? `chosen by ${by.join(", ")}` : "")));
  }
  const facts = ["concept", "pos", "distractor_hops", "cluster", "template"].map((name) => [name, value(b, i, name)]).filter(([, v]) => v !== null && v !== undefined);
  const line = [about.probes[b.probe], `id ${b.id[i]}`, ...facts.map(([name, v]) => `${name.replace("_", " ")} ${v}`)];
  return element("div", { class: "detail" }, element("p", {}, element("bdi", {}, line.join(" · "))), list);
}

function browse(wanted) {
  form.reset();
  for (const [name, v] of Object.entries(wanted)) {
    const field = form.elements[name];
    if (!field) continue;
    // Which hops and families there are is known when the probe is read.
    if (["hops", "family", "show"].includes(name)) field.append(element("option", { value: v }, v));
    field.value = v;
    if (field.selectedIndex < 0) field.selectedIndex = 0;
  }
  return select();
}

function startQuestions() {
  let waiting;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(select));
  form.addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(select, event.target.id === "text" ? 200 : 0);
  });
  table = new DataTable("#rows", {
    serverSide: true,
    processing: false,
    searching: false,
    deferLoading: 0,
    order: [],
    autoWidth: false,
    pageLength: 25,
    lengthMenu: [10, 25, 100],
    layout: { topStart: null, topEnd: null, bottomStart: ["info", "pageLength"], bottomEnd: "paging" },
    columns: COLUMNS.map((_, column) => ({ data: null, defaultContent: "", orderable: true, createdCell: (cell, _value, { k }) => fillCell(cell, k, column) })),
    ajax: ({ draw, start, length, order }, reply) => {
      const found = shown.rows.length;
      reply({ draw, recordsTotal: found, recordsFiltered: found, data: inOrder(order).slice(start, start + length).map((k) => ({ k })) });
    },
  });
  setOptions(byId("show"), [["any", KINDS.any[0]]]);
  return browse(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
}
