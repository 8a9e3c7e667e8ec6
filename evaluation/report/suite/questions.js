// The browser of questions: filters over columns of numbers, and a table of one page of rows.

const form = document.getElementById("filter");
const blocks = new Map(); // of each probe that was looked at
let shown = { at: [], rows: [] }; // the selection: block and row of each question
let sorted; // the same, in the order of the table
let turns = 0;
let table;

async function block(probe) {
  if (!blocks.has(probe)) {
    const held = await unpack(`packed-${probe}`);
    held.probe = probe;
    held.size = held.id.length;
    held.starts = new Int32Array(held.size + 1);
    for (let i = 0; i < held.size; i++) {
      held.starts[i + 1] = held.starts[i] + (held.width[i] ?? held.width); // one for all, or each
    }
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
const value = (b, i, name) => b.columns[name]?.values[b.columns[name].codes[i]];
const picked = (b, i, model) => b.answers[model]?.picked[i] ?? -1;
const isRight = (b, i, model) => picked(b, i, model) === b.gold[i];

const isWrong = (b, i, model) => picked(b, i, model) >= 0 && !isRight(b, i, model);

const bothScored = (b, i, m, o) => picked(b, i, m) >= 0 && picked(b, i, o) >= 0;

// What is shown of the answers of a model m, or of it and another one, o.
const KINDS = {
  any: ["all answers", () => true],
  right: ["right", (b, i, m) => isRight(b, i, m)],
  wrong: ["wrong", (b, i, m) => isWrong(b, i, m)],
  aside: ["set aside", (b, i, m) => picked(b, i, m) < 0],
};
const KINDS_OF_TWO = {
  differ: ["disagreements", (b, i, m, o) => picked(b, i, m) !== picked(b, i, o) && bothScored(b, i, m, o)],
  only: ["first model right, other not", (b, i, m, o) => isRight(b, i, m) && !isRight(b, i, o)],
  other: ["other model right, first not", (b, i, m, o) => !isRight(b, i, m) && isRight(b, i, o)],
  neither: ["both wrong", (b, i, m, o) => isWrong(b, i, m) && isWrong(b, i, o)],
};
const FILTERS = { hops: "hops", family: "distractor_family", distance: "distractor_hops" };

function matching(b, { model, other, text, test, ...wanted }) {
  const found = [];
  if (!b.answers[model] || (other && !b.answers[other])) return found;
  const filters = Object.entries(FILTERS).filter(([name]) => wanted[name]);
  const contains = (values) => values.map((one) => one.toLowerCase().includes(text));
  const questions = text && contains(b.question.values);
  const choices = text && contains(b.choices.values);
  const hasText = (i) => questions[b.question.codes[i]]
    || b.choices.codes.slice(b.starts[i], b.starts[i + 1]).some((code) => choices[code]);
  for (let i = 0; i < b.size; i++) {
    if (test(b, i, model, other)
      && filters.every(([name, column]) => named(value(b, i, column)) === wanted[name])
      && (!text || hasText(i))) found.push(i);
  }
  return found;
}

const COLUMNS = [
  ["question", question],
  ["right_answer", (b, i) => choice(b, i, b.gold[i])],
  ["choice", (b, i, m) => choice(b, i, picked(b, i, m))],
  ["other_choice", (b, i, m, o) => choice(b, i, picked(b, i, o))],
  ["share_percent", (b, i, m) => (picked(b, i, m) < 0 ? "" : b.answers[m].share[i])],
  ["hops", (b, i) => value(b, i, "hops") ?? ""],
  ["distractor_family", (b, i) => value(b, i, "distractor_family") ?? ""],
  ["models_right", (b, i) => b.right[i]],
];

function asked() {
  const given = Object.fromEntries(new FormData(form));
  const kinds = given.other === "" ? KINDS : { ...KINDS, ...KINDS_OF_TWO };
  const show = Object.hasOwn(kinds, given.show) ? given.show : "any";
  return { ...given, show, kinds, test: kinds[show][1], text: given.text.toLowerCase() };
}

// The values that can be chosen are those of the probes in view.
function offer(loaded, kinds) {
  setOptions(byId("show"), Object.entries(kinds).map(([key, [name]]) => [key, name]));
  for (const [name, column] of Object.entries(FILTERS)) {
    const values = new Set(loaded.flatMap((b) => b.columns[column]?.values ?? []).map(named));
    const ordered = [...values].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
    setOptions(byId(name), [["", "any"], ...ordered.map((one) => [one, one])]);
  }
}

// Say what is shown, also where the controls are not: in print, and to screen readers.
function describe(loaded, { probe, model, other, show, hops, family, distance, text, kinds }) {
  const sum = (name) => loaded.reduce((total, b) => total + b[name], 0);
  const parts = [
    probe === "" ? "all probes" : about.probes[probe], about.models[model],
    other && `compared with ${about.models[other]}`, show !== "any" && kinds[show][0],
    hops && `hops ${hops}`, family, distance && `distance ${distance}`, text && `“${text}”`,
  ].filter(Boolean);
  const lacking = [model, other].filter((m) => m && !loaded.some((b) => b.answers[m]));
  return [
    `${count(shown.rows.length)} of ${count(sum("total"))} questions: ${parts.join(", ")}.`,
    ...lacking.map((m) => ` ${about.models[m]} has no results here.`),
    sum("size") < sum("total") ? ` The page holds a sample of ${count(sum("size"))} of them.` : "",
  ].join("");
}

async function select() {
  const turn = ++turns;
  byId("rows").classList.add("stale");
  const first = asked();
  const loaded = [];
  for (const probe of first.probe === "" ? about.probes.keys() : [Number(first.probe)]) {
    loaded.push(await block(probe));
    if (turn !== turns) return; // Something else was chosen meanwhile.
  }
  offer(loaded, first.kinds);
  const wanted = asked();
  shown = { at: [], rows: [], wanted };
  for (const b of loaded) {
    for (const row of matching(b, wanted)) {
      shown.at.push(b);
      shown.rows.push(row);
    }
  }
  sorted = undefined;
  byId("found").textContent = describe(loaded, wanted);
  const state = [...new FormData(form)].filter(([, v]) => v !== "");
  if (turn > 1) history.replaceState(null, "", `#${new URLSearchParams(state)}`);
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
    const { model, other } = shown.wanted;
    const keys = rows.map((k) => COLUMNS[column][1](shown.at[k], shown.rows[k], model, other));
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
  const marks = { true: "✓ ", false: picked(b, i, by) < 0 ? "set aside" : "✗ " };
  const mark = by === undefined ? "" : marks[isRight(b, i, by)];
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
    const by = Object.keys(b.answers).filter((m) => picked(b, i, m) === at)
      .map((m) => `${about.models[m]} (${b.answers[m].share[i]}%)`);
    const gold = at === b.gold[i];
    list.append(element("li", gold ? { class: "gold" } : {},
      element("bdi", { dir: "auto" }, choice(b, i, at)), gold ? " ✓ right answer" : "",
      element("small", {}, by.length ? `chosen by ${by.join(", ")}` : "")));
  }
  const facts = ["concept", "pos", "distractor_hops", "cluster", "template"]
    .map((name) => [name.replace("_", " "), value(b, i, name) ?? null]).filter(([, v]) => v !== null);
  const line = [[about.probes[b.probe]], ["id", b.id[i]], ...facts].map((one) => one.join(" "));
  return element("div", { class: "detail" }, element("p", {}, element("bdi", {}, line.join(" · "))), list);
}

function browse(wanted) {
  form.reset();
  for (const [name, v] of Object.entries(wanted)) {
    const field = form.elements[name];
    if (!field) continue;
    // Which of these there are is known when the probe is read.
    if (name in FILTERS || name === "show") field.append(element("option", { value: v }, v));
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
    columns: COLUMNS.map((_, column) => ({
      data: null,
      defaultContent: "",
      createdCell: (cell, _value, { k }) => fillCell(cell, k, column),
    })),
    ajax: ({ draw, start, length, order }, reply) => {
      const found = shown.rows.length;
      const data = inOrder(order).slice(start, start + length).map((k) => ({ k }));
      reply({ draw, recordsTotal: found, recordsFiltered: found, data });
    },
  });
  setOptions(byId("show"), [["any", KINDS.any[0]]]);
  return browse(Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
}
