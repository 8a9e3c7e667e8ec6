// The page of a suite: its tables, sorted and paged by DataTables.
// One module with downloads.js and questions.js, which come first. Texts of data become text nodes
// only; nothing is fetched; the filters are part of the page's address.

const about = JSON.parse(document.getElementById("about").textContent);
const byId = (id) => document.getElementById(id);
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

// --- tables ----------------------------------------------------------------------------------

const plain = { paging: false, searching: false, info: false, order: [], autoWidth: false };
const number = (cell) => (cell.querySelector("b") ?? cell.firstChild)?.textContent.trim() ?? "";

function sortable(table) {
  for (const row of table.tBodies[0].rows) {
    for (const cell of [...row.cells].slice(1)) {
      const value = Number.parseFloat(number(cell).replaceAll(",", ""));
      cell.dataset.order = Number.isNaN(value) ? -1 : value;
    }
  }
  const fixed = [...table.tHead.rows[0].cells].findIndex((cell) => cell.ariaHidden === "true");
  // The first click on a number shows the highest.
  const numbers = { targets: "_all", orderSequence: ["desc", "asc"] };
  const names = { targets: 0, orderSequence: ["asc", "desc"] };
  const rest = fixed < 0 ? [] : [{ targets: fixed, orderable: false }];
  new DataTable(table, { ...plain, columnDefs: [...rest, names, numbers] });
}

// --- start -----------------------------------------------------------------------------------

const within = (name) => byId(name).closest("section");
const board = within("leaderboard").querySelector("table");

function buttons(what) {
  const made = ["csv", "tex"].map((kind) => {
    const button = element("button", { type: "button", "data-download": `${what}.${kind}` },
      { csv: "CSV", tex: "LaTeX" }[kind]);
    button.addEventListener("click", () => download(button.dataset.download));
    return button;
  });
  return element("p", { class: "downloads" }, "Download: ", ...made);
}

// A cell of a heat map leads to its questions.
function follow() {
  const wanted = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (!("probe" in wanted)) return undefined;
  byId("questions").scrollIntoView();
  return browse(wanted);
}

async function start() {
  document.documentElement.classList.add("scripted");
  byId("leaderboard").after(buttons("leaderboard"));
  for (const name of ["leaderboard", "models"]) {
    for (const table of within(name).querySelectorAll("table")) {
      const fold = table.closest("details:not([open])");
      if (fold) fold.addEventListener("toggle", () => sortable(table), { once: true });
      else sortable(table);
    }
  }
  performance.mark("ready");
  if (form) {
    byId("found").before(buttons("questions"));
    await startQuestions();
    window.addEventListener("hashchange", follow);
  }
  performance.mark("rows");
  performance.mark("complete");
}

start();
