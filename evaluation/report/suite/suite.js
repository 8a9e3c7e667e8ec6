// The page of a suite: its tables, sorted and paged by DataTables, and its heat maps.
// One module with downloads.js and questions.js, which come first. Texts of data become text nodes
// only; nothing is fetched; the filters are part of the page's address.

const about = JSON.parse(document.getElementById("about").textContent);
const byId = (id) => document.getElementById(id);
const percent = (share) => `${(100 * share).toFixed(1)}%`;
const count = (number) => number.toLocaleString("en");
const named = (value) => String(value ?? "not given");

function element(tag, attributes = {}, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...content);
  return made;
}

function setOptions(select, entries) {
  const before = select.value;
  select.replaceChildren(...entries.map(([value, name]) => element("option", { value }, name)));
  if (entries.some(([value]) => String(value) === before)) select.value = before;
}

function decode(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function unpack(id) {
  const bytes = decode(byId(id).textContent);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// --- leaderboards and profiles -------------------------------------------------------------

const plain = { paging: false, searching: false, info: false, order: [], autoWidth: false };

function sortable(table) {
  if (DataTable.isDataTable(table)) return;
  const fixed = [...table.tHead.rows[0].cells].findIndex((cell) => cell.ariaHidden === "true");
  // The first click on a number shows the highest.
  const numbers = { targets: "_all", orderSequence: ["desc", "asc"] };
  const names = { targets: 0, orderSequence: ["asc", "desc"] };
  const rest = fixed < 0 ? [] : [{ targets: fixed, orderable: false }];
  new DataTable(table, { ...plain, columnDefs: [...rest, names, numbers] });
}

function showOne(parts, shown) {
  for (const part of parts) part.hidden = part !== shown;
  sortable(shown.querySelector("table"));
}

const views = [byId("accuracy"), byId("strict")];
const profiles = [...document.querySelectorAll(".profile")];
const showView = () => showOne(views, byId(byId("view").value));
const showProfile = () => showOne(profiles, byId(`profile-${byId("profile").value}`));

// --- heat maps -----------------------------------------------------------------------------

let maps;

function heatTable(map, model) {
  const probe = Number(byId("map-probe").value);
  const table = element("table", { class: "heat" });
  const caption = `${about.models[model]} on ${about.probes[probe]}`;
  table.append(element("caption", { class: "unseen" }, caption));
  const head = table.createTHead();
  const columns = map.families.flatMap(([name, span]) => Array(span).fill(name));
  const apart = (at) => (at && at === columns.indexOf("random") ? "apart" : "");
  const families = map.families.map(([name, span]) =>
    element("th", { scope: "colgroup", colspan: span, class: apart(columns.indexOf(name)) }, name));
  const corner = () => element("th", { scope: "col", class: "corner" }, "hops");
  head.insertRow().append(corner(), ...families);
  if (new Set(map.distances).size > 1) {
    const distances = map.distances.map((name, at) =>
      element("th", { scope: "col", class: apart(at) }, `distance ${name}`));
    head.insertRow().append(corner(), ...distances);
    head.rows[0].cells[0].textContent = "distractors";
  }
  const body = table.createTBody();
  map.hops.forEach((hops, row) => {
    const cells = map.cells[model][row].map((cell, at) => {
      if (!cell) return element("td", { class: `none ${apart(at)}` }, "–");
      const [value, low, high, n] = cell;
      const lines = [`${percent(low)} to ${percent(high)}`, `n ${count(n)}`];
      const content = element(form ? "button" : "div", form ? { type: "button" } : {},
        element("b", {}, percent(value)), ...lines.map((line) => element("small", {}, line)));
      const distance = map.distances[at];
      const see = { probe, model, hops, family: columns[at], distance };
      if (form) content.addEventListener("click", () => seeQuestions(see));
      const shade = n < about.small ? "few" : `s${Math.round(20 * value)}`;
      return element("td", { class: `${shade} ${apart(at)}` }, content);
    });
    body.insertRow().append(element("th", { scope: "row" }, hops), ...cells);
  });
  return table;
}

function seeQuestions(wanted) {
  byId("questions").focus();
  byId("questions").scrollIntoView();
  return browse(wanted);
}

function showMaps() {
  const probe = byId("map-probe").value;
  const map = maps[probe];
  const say = (text) => element("p", { class: "empty" }, text);
  const chosen = [...document.querySelectorAll("#map-models input:checked")].map((box) => box.value);
  const drawn = (model) => element("div", { class: "wide" }, heatTable(map, Number(model)));
  const figures = chosen.map((model) => element("figure", {},
    element("figcaption", {}, about.models[model]),
    map?.cells[model] ? drawn(model) : say("No results on this probe.")));
  if (!map) figures.splice(0, Infinity, say("No probe has questions that differ in hops or distractors."));
  const title = element("h3", {}, about.probes[probe] ?? "");
  byId("map-shown").replaceChildren(title, ...(figures.length ? figures : [say("Choose models.")]));
}

// --- start ---------------------------------------------------------------------------------

async function start() {
  document.documentElement.classList.add("scripted");
  byId("view").addEventListener("change", showView);
  byId("profile").addEventListener("change", showProfile);
  for (const button of document.querySelectorAll("[data-download]")) {
    button.addEventListener("click", () => download(button.dataset.download));
  }
  showView();
  showProfile();
  performance.mark("ready");
  if (form) await startQuestions();
  performance.mark("rows");
  maps = await unpack("packed-maps");
  setOptions(byId("map-probe"), about.probes.map((name, i) => [i, name]).filter(([i]) => maps[i]));
  byId("map-probe").addEventListener("change", showMaps);
  byId("map-models").addEventListener("change", showMaps);
  showMaps();
  performance.mark("complete");
}

start();
