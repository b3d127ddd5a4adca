"use strict";

const byId = (id) => document.getElementById(id);

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

async function call(path, body) {
  const headers = { "content-type": "application/json" };
  if (byId("key").value) headers.authorization = `Bearer ${byId("key").value}`;
  const options = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  const reply = await fetch(path, options);
  const content = await reply.json();
  if (!reply.ok) {
    if (reply.status === 401) byId("key-box").open = true;
    throw new Error(content.error.message ?? content.error);
  }
  return content;
}

// Runs the work of a form, with its state in the status line below it.
function onSubmit(section, work) {
  const status = section.querySelector(".status");
  section.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    status.className = "status";
    status.textContent = "Working…";
    const start = performance.now();
    try {
      const summary = await work(section.querySelector(".scroll"));
      status.textContent = `${summary}, ${Math.round(performance.now() - start)} ms`;
    } catch (error) {
      status.className = "status error";
      status.textContent = error.message;
    }
  });
}

// A table of numbers with cells that are colored from the smallest to the largest; `best` marks cells.
function matrix(rows, columns, values, best = () => false) {
  const all = values.flat();
  const lowest = Math.min(...all);
  const range = Math.max(...all) - lowest || 1;
  const table = element("table", "", { class: "matrix" });
  const head = table.createTHead().insertRow();
  head.append(element("td"), ...columns.map((name) => element("th", name, { scope: "col", dir: "auto" })));
  const body = table.createTBody();
  rows.forEach((name, i) => {
    const row = body.insertRow();
    row.append(element("th", name, { scope: "row", dir: "auto" }));
    values[i].forEach((value, j) => {
      const cell = element("td", value.toFixed(2));
      cell.style.setProperty("--share", (0.6 * (value - lowest)) / range);
      if (best(i, j)) cell.className = "best";
      row.append(cell);
    });
  });
  return table;
}

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

onSubmit(byId("similarity"), async (place) => {
  const texts = byId("sentences").value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (texts.length < 2) throw new Error("Type at least two lines.");
  const prompt = byId("prompt").value;
  const vectors = await call("embed", prompt ? { inputs: texts, prompt_name: prompt } : { inputs: texts });
  const values = vectors.map((a) => vectors.map((b) => dot(a, b)));
  place.replaceChildren(matrix(texts.map((text, i) => `${i + 1}. ${text}`), texts.map((_, i) => String(i + 1)), values));
  return `${texts.length} sentences`;
});

let links = [];
let codes = [];

onSubmit(byId("align"), async (place) => {
  const request = { source: byId("source").value, target: byId("target").value };
  const named = [byId("source-code").value.trim(), byId("target-code").value.trim()];
  if (named[0]) request.source_language = named[0];
  if (named[1]) request.target_language = named[1];
  const found = await call("align", request);
  links = found.links;
  codes = named;
  const note = byId("align").querySelector(".note");
  note.hidden = !found.no_probabilities;
  note.textContent = found.no_probabilities ? `No probabilities: ${found.no_probabilities}.` : "";
  const table = element("table");
  const head = table.createTHead().insertRow();
  head.append(...["First text", "Its translation", "Cost", "Probability"].map((name) => element("th", name, { scope: "col" })));
  const body = table.createTBody();
  for (const link of links) {
    const cost = link.source.length && link.target.length ? link.cost.toFixed(2) : "alone";
    const row = body.insertRow();
    row.append(element("td", link.source_text, { dir: "auto" }), element("td", link.target_text, { dir: "auto" }));
    row.append(element("td", cost), element("td", link.probability === null ? "–" : link.probability.toFixed(3)));
  }
  place.replaceChildren(table);
  byId("align").querySelector(".downloads").hidden = false;
  return `${links.length} links`;
});

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
const notXml = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;
const oneLine = (text) => text.replace(/[\t\n\v\f\r\u001c-\u001e\u0085\u2028\u2029]+/g, " ");

// Files of this library have a score in front, where there is one; here it is the probability.
function tsv(pairs) {
  const line = ({ probability, source_text, target_text }) => [probability, oneLine(source_text), oneLine(target_text)];
  return pairs.map((link) => `${line(link).filter((cell) => cell !== null).join("\t")}\n`).join("");
}

function tmx(pairs) {
  const [source, target] = codes.map((code) => code || "und");
  const variant = (code, text) => `<tuv xml:lang="${escaped(code)}"><seg>${escaped(text.replace(notXml, ""))}</seg></tuv>`;
  const score = ({ probability }) => (probability === null ? "" : `<prop type="score">${probability}</prop>`);
  const units = pairs.map(
    (link) => `<tu>${score(link)}${variant(source, link.source_text)}${variant(target, link.target_text)}</tu>\n`,
  );
  const header =
    `<header creationtool="interlingua" creationtoolversion="1" segtype="sentence" o-tmf="none" adminlang="en" ` +
    `srclang="${escaped(source)}" datatype="plaintext"/>`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n${header}\n<body>\n${units.join("")}</body>\n</tmx>\n`;
}

for (const button of document.querySelectorAll("[data-form]")) {
  button.addEventListener("click", () => {
    const form = button.dataset.form;
    const pairs = links.filter((link) => link.source.length && link.target.length);
    const content = form === "tsv" ? tsv(pairs) : tmx(pairs);
    const anchor = element("a", "", { download: `aligned.${form}` });
    anchor.href = URL.createObjectURL(new Blob([content], { type: "text/plain;charset=utf-8" }));
    anchor.click();
    URL.revokeObjectURL(anchor.href);
  });
}

onSubmit(byId("tokens"), async (place) => {
  const found = await call("tokens", { source: byId("first").value, target: byId("second").value });
  const columnMax = found.target.map((_, j) => Math.max(...found.cosines.map((row) => row[j])));
  const rowMax = found.cosines.map((row) => Math.max(...row));
  const isMutual = (i, j) => found.cosines[i][j] === rowMax[i] && found.cosines[i][j] === columnMax[j];
  const names = (tokens) => tokens.map((token) => token.text.trim() || "␣");
  place.replaceChildren(matrix(names(found.source), names(found.target), found.cosines, isMutual));
  return "Tokens that are each other's nearest are underlined";
});

const percent = (share) => `${Math.round(100 * share)} %`;

onSubmit(byId("search"), async (place) => {
  const language = byId("in-language").value;
  const most = byId("per-language").value;
  const body = { query: byId("question").value, mode: byId("mode").value, languages: language ? [language] : [] };
  if (most) body.per_language = Number(most);
  const found = await call("search", body);
  const list = element("ol", "", { class: "hits" });
  for (const hit of found.hits) {
    const item = element("li");
    const title = hit.title ? `${hit.title}: ` : "";
    item.append(element("p", title + hit.text, { dir: "auto", lang: hit.language.slice(0, 3) }));
    item.append(element("p", `${hit.language || "language unknown"} · ${hit.id} · ${hit.score.toFixed(3)}`, { class: "origin" }));
    list.append(item);
  }
  const table = element("table");
  const head = table.createTHead().insertRow();
  head.append(...["Language", "Of the passages found", "Of the index"].map((name) => element("th", name, { scope: "col" })));
  const rows = table.createTBody();
  for (const share of found.languages) {
    const cells = [share.language || "unknown", percent(share.found), percent(share.indexed)];
    rows.insertRow().append(...cells.map((text) => element("td", text)));
  }
  place.replaceChildren(list, table);
  return `${found.hits.length} passages`;
});

const tabs = [...document.querySelectorAll("[role=tab]")];

function choose(tab) {
  for (const other of tabs) {
    other.setAttribute("aria-selected", other === tab);
    other.tabIndex = other === tab ? 0 : -1;
    byId(other.getAttribute("aria-controls")).hidden = other !== tab;
  }
  tab.focus();
}

tabs.forEach((tab) => {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const shown = tabs.filter((other) => !other.hidden);
    if (step) choose(shown[(shown.indexOf(tab) + step + shown.length) % shown.length]);
  });
});

async function describe() {
  try {
    const info = await call("info");
    byId("model").textContent = `${info.model_id}: ${info.dimensions} dimensions, texts of up to ${info.max_input_length} tokens`;
    byId("prompt").replaceChildren(element("option", "the server's", { value: "" }), ...info.prompts.map((name) => element("option", name)));
    byId("tab-search").hidden = !info.indexed_passages;
    const languages = Object.keys(info.indexed_passages ?? {}).filter(Boolean);
    byId("in-language").replaceChildren(element("option", "all languages", { value: "" }), ...languages.map((name) => element("option", name)));
  } catch (error) {
    byId("model").textContent = error.message;
  }
}

byId("key").addEventListener("change", describe);
describe();
