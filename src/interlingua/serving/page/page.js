"use strict";

const byId = (id) => document.getElementById(id);

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

async function call(path, body, signal) {
  const headers = { "content-type": "application/json" };
  if (byId("key").value) headers.authorization = `Bearer ${byId("key").value}`;
  const options = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
  const reply = await fetch(path, { ...options, signal }).catch(() => {
    throw new Error("The server cannot be reached; check that it is running.");
  });
  const content = await reply.json().catch(() => null); // a proxy's own pages are no JSON
  if (reply.ok && content !== null) return content;
  if (reply.status === 401) byId("key-box").open = true;
  const message = content?.error?.message ?? content?.error;
  throw new Error(message ?? `The server, or a proxy, answered with status ${reply.status} and no reason; try again later.`);
}

// Runs `work` and shows its state in a status line. `work` returns a function, which shows the
// result and returns a summary. This function is called only if no newer work of the same kind has
// started. `work` gets a signal, which aborts its requests when newer work starts, so that the
// server drops them.
function runner(status, clear = () => {}) {
  let newest = new AbortController();
  return async (work) => {
    newest.abort();
    const own = (newest = new AbortController());
    clear();
    status.className = "status";
    status.textContent = "Working…";
    const start = performance.now();
    try {
      const show = await work(own.signal);
      if (own === newest) status.textContent = `${show()}, ${Math.round(performance.now() - start)} ms`;
    } catch (error) {
      if (own !== newest) return;
      status.className = "status error";
      status.textContent = error.message;
    }
  };
}

// `work` reads the form, passes its signal on to requests, and returns a function. This function is
// called with `put`, which shows elements in the place below the form.
function onSubmit(section, work) {
  const place = section.querySelector(".scroll");
  const run = runner(section.querySelector(".status"), () => {
    place.replaceChildren();
    for (const part of section.querySelectorAll(".scroll, .downloads, .note")) part.hidden = true;
  });
  const put = (...elements) => {
    place.replaceChildren(...elements);
    place.hidden = false; // an empty place would be a stop of the Tab key
  };
  section.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    run(async (signal) => {
      const show = await work(signal);
      return () => show(put);
    });
  });
}

// The language that a field names; "" where the model needs none and the field is not shown.
const codeIn = (id) => (byId(id).closest("[data-needs][hidden]") ? "" : byId(id).value.trim());

// The tag by which browsers choose voices and fonts: "de" for deu_Latn. A text that is not a code gives "", an unknown language.
function languageTag(code) {
  try {
    const tag = new Intl.Locale(code.trim().replaceAll("_", "-")).minimize().toString();
    return /^[a-z]{2,3}(-|$)/.test(tag) ? tag : "";
  } catch {
    return "";
  }
}

const written = (name, text, code, attributes = {}) =>
  element(name, text, { dir: "auto", lang: languageTag(code ?? ""), ...attributes });

// Visible only to screen readers.
const spoken = (text, attributes = {}) => element("span", text, { class: "spoken", ...attributes });

function tableWith(caption, heads, attributes = {}) {
  const table = element("table", "", attributes);
  table.createCaption().append(spoken(caption));
  table.createTHead().insertRow().append(...heads);
  return table;
}

const columnHeads = (names) => names.map((name) => element("th", name, { scope: "col" }));

// A table of numbers with cells that are colored from the smallest to the largest; `best` marks cells.
function matrix(caption, rowHeads, colHeads, values, best = () => false) {
  const all = values.flat(); // too many values to pass as arguments of Math.min
  const lowest = all.reduce((least, value) => Math.min(least, value), Infinity);
  const range = all.reduce((most, value) => Math.max(most, value), -Infinity) - lowest || 1;
  const table = tableWith(caption, [element("td"), ...colHeads], { class: "matrix" });
  const body = table.createTBody();
  rowHeads.forEach((head, i) => {
    const row = body.insertRow();
    row.append(head);
    values[i].forEach((value, j) => {
      const cell = element("td", value.toFixed(2));
      cell.style.setProperty("--share", (0.6 * (value - lowest)) / range);
      if (best(i, j)) {
        cell.className = "best";
        cell.append(spoken(" each other's nearest"));
      }
      row.append(cell);
    });
  });
  return table;
}

const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);

// Vectors of texts; a request has one language, so texts of each language go together.
async function embedded(texts, codes, prompt, signal) {
  const vectors = [];
  const embed = async (code) => {
    const rows = texts.map((_, row) => row).filter((row) => codes[row] === code);
    const body = { inputs: rows.map((row) => texts[row]) };
    if (prompt) body.prompt_name = prompt;
    if (code) body.language = code;
    const found = await call("embed", body, signal);
    rows.forEach((row, i) => (vectors[row] = found[i]));
  };
  await Promise.all([...new Set(codes)].map(embed));
  return vectors;
}

onSubmit(byId("similarity"), async (signal) => {
  const texts = byId("sentences").value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (texts.length < 2) throw new Error("Type at least two lines.");
  const named = codeIn("sentence-codes").split(/[\s,;]+/);
  if (named.length > 1 && named.length !== texts.length)
    throw new Error(`Expected one language for each line, or one for all lines; found ${named.length} languages for ${texts.length} lines.`);
  const codes = texts.map((_, row) => named[row] ?? named[0]);
  const vectors = await embedded(texts, codes, byId("prompt").value, signal);
  const values = vectors.map((a) => vectors.map((b) => dot(a, b)));
  const rowHeads = texts.map((text, i) => written("th", `${i + 1}. ${text}`, codes[i], { scope: "row" }));
  const colHeads = columnHeads(texts.map((_, i) => String(i + 1)));
  colHeads.forEach((head, i) => head.append(spoken(` ${texts[i]}`, { lang: languageTag(codes[i]) })));
  return (put) => {
    put(matrix("Cosines between the sentences", rowHeads, colHeads, values));
    return `${texts.length} sentences`;
  };
});

let links = [];
let codes = [];

onSubmit(byId("align"), async (signal) => {
  const request = { source: byId("source").value, target: byId("target").value };
  const named = [codeIn("source-code"), codeIn("target-code")];
  if (named[0]) request.source_language = named[0];
  if (named[1]) request.target_language = named[1];
  const found = await call("align", request, signal);
  const languages = [found.source_language, found.target_language]; // the codes of what was typed, also of "German"
  const table = tableWith("Linked sentences", columnHeads(["First text", "Its translation", "Cost", "Probability"]));
  const body = table.createTBody();
  for (const link of found.links) {
    const cost = link.source.length && link.target.length ? link.cost.toFixed(2) : "alone";
    const row = body.insertRow();
    row.append(written("td", link.source_text, languages[0]), written("td", link.target_text, languages[1]));
    row.append(element("td", cost), element("td", link.probability === null ? "–" : link.probability.toFixed(3)));
  }
  return (put) => {
    links = found.links;
    codes = languages;
    const note = byId("align").querySelector(".note");
    note.hidden = !found.no_probabilities;
    note.textContent = found.no_probabilities ? `No probabilities: ${found.no_probabilities}.` : "";
    byId("align").querySelector(".downloads").hidden = false;
    put(table);
    return `${links.length} links`;
  };
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
  const [source, target] = codes.map((code) => languageTag(code ?? "") || "und"); // language tags of BCP 47, as XML requires
  const variant = (code, text) => `<tuv xml:lang="${code}"><seg>${escaped(text.replace(notXml, ""))}</seg></tuv>`;
  const score = ({ probability }) => (probability === null ? "" : `<prop type="score">${probability}</prop>`);
  const units = pairs.map(
    (link) => `<tu>${score(link)}${variant(source, link.source_text)}${variant(target, link.target_text)}</tu>\n`,
  );
  const header =
    `<header creationtool="interlingua" creationtoolversion="1" segtype="sentence" o-tmf="none" adminlang="en" ` +
    `srclang="${source}" datatype="plaintext"/>`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n${header}\n<body>\n${units.join("")}</body>\n</tmx>\n`;
}

function save(name, content) {
  const anchor = element("a", "", { download: name });
  anchor.href = URL.createObjectURL(new Blob([content], { type: "text/plain;charset=utf-8" }));
  anchor.click();
  URL.revokeObjectURL(anchor.href);
}

for (const button of document.querySelectorAll("[data-form]")) {
  button.addEventListener("click", () => {
    const form = button.dataset.form;
    const pairs = links.filter((link) => link.source.length && link.target.length);
    save(`aligned.${form}`, form === "tsv" ? tsv(pairs) : tmx(pairs));
  });
}

// A plain link would send its request without the key.
const saveDocument = runner(byId("document-status"));
byId("document").addEventListener("click", () =>
  saveDocument(async (signal) => {
    const content = JSON.stringify(await call("openapi.json", undefined, signal), null, 2);
    return () => {
      save("openapi.json", content);
      return "Saved as openapi.json";
    };
  }),
);

onSubmit(byId("tokens"), async (signal) => {
  const request = { source: byId("first").value, target: byId("second").value };
  const named = [codeIn("first-code"), codeIn("second-code")];
  if (named[0]) request.source_language = named[0];
  if (named[1]) request.target_language = named[1];
  const found = await call("tokens", request, signal);
  const columnMax = found.target.map((_, j) => Math.max(...found.cosines.map((row) => row[j])));
  const rowMax = found.cosines.map((row) => Math.max(...row));
  const isMutual = (i, j) => found.cosines[i][j] === rowMax[i] && found.cosines[i][j] === columnMax[j];
  const heads = (tokens, code, scope) => tokens.map((token) => written("th", token.text.trim() || "␣", code, { scope }));
  const rowHeads = heads(found.source, named[0], "row");
  const colHeads = heads(found.target, named[1], "col");
  return (put) => {
    put(matrix("Cosines between the tokens", rowHeads, colHeads, found.cosines, isMutual));
    return "Tokens that are each other's nearest are underlined";
  };
});

const percent = (share) => `${Math.round(100 * share)} %`;

// The title and the headings are a line of their own, which is the link; the link's field is not repeated in the metadata.
function hitItem(hit) {
  const item = element("li");
  const context = [hit.title, hit.heading].filter(Boolean).join(" › ");
  if (context || hit.link) {
    const line = written("p", hit.link ? "" : context, hit.language, { class: "context" });
    if (hit.link) line.append(element("a", context || hit.link, { href: hit.link, rel: "noopener noreferrer" }));
    item.append(line);
  }
  item.append(written("p", hit.text, hit.language));
  // The id of a chunk ends with its number; the id of a section already ends with its offset.
  const isChunk = hit.id.startsWith(hit.document) && /#\d+$/.test(hit.id.slice(hit.document.length));
  const places = [isChunk ? `${hit.id} (offset ${hit.offset})` : hit.id, ...hit.places].join(", ");
  item.append(element("p", `${hit.language || "language unknown"} · ${places} · ${hit.score.toFixed(3)}`, { class: "origin" }));
  const fields = Object.entries(hit.metadata).filter(([, value]) => value !== hit.link);
  if (fields.length) {
    const line = element("p", "", { class: "origin" });
    for (const [name, value] of fields) {
      if (line.firstChild) line.append(" · ");
      line.append(element("bdi", `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`));
    }
    item.append(line);
  }
  return item;
}

onSubmit(byId("search"), async (signal) => {
  const language = byId("in-language").value;
  const most = byId("per-language").value;
  const body = { query: byId("question").value, mode: byId("mode").value, languages: language ? [language] : [] };
  if (most) body.per_language = Number(most);
  if (codeIn("question-code")) body.language = codeIn("question-code");
  const found = await call("search", body, signal);
  const list = element("ol", "", { class: "hits" });
  for (const hit of found.hits) list.append(hitItem(hit));
  const table = tableWith("Languages of the passages", columnHeads(["Language", "Of the passages found", "Of the index"]));
  const rows = table.createTBody();
  for (const share of found.languages) {
    const cells = [share.language || "unknown", percent(share.found), percent(share.indexed)];
    rows.insertRow().append(...cells.map((text) => element("td", text)));
  }
  return (put) => {
    put(list, table);
    return `${found.hits.length} passages`;
  };
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
    for (const part of document.querySelectorAll("[data-needs]")) part.hidden = !info[part.dataset.needs];
    byId("tab-search").hidden = !info.indexed_passages;
    const languages = Object.keys(info.indexed_passages ?? {}).filter(Boolean);
    byId("in-language").replaceChildren(element("option", "all languages", { value: "" }), ...languages.map((name) => element("option", name)));
  } catch (error) {
    byId("model").textContent = error.message;
  }
}

byId("key").addEventListener("change", describe);
describe();
