"use strict";
// Draws the parts that depend on the user's choices, with the data in the page. Texts are set as text, never as markup.
(() => {
const DATA = JSON.parse(document.getElementById("data").textContent);
const { models: MODELS, tasks: TASKS, languages: LANGUAGES, wrong: WRONG, baseline: BASE, level: LEVEL } = DATA;
const HUES = 8, SHAPES = 4, CARDS = 20, WIDE = 48, FOLDED = 80, DEEP = 60, ALONE = "one language each", ROWS = 12;
const RTL = new Set(["Arab", "Hebr", "Syrc", "Thaa", "Nkoo", "Mand", "Samr"]);
const $ = id => document.getElementById(id);
const state = { task: 0, metric: "", order: "family", mode: "scores", find: "", sort: null, turned: false,
  model: 0, diff: false, from: "", to: "", eTask: "", eLanguage: "", eModel: "", eFind: "", shown: CARDS };

// ---- small tools
function h(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("--")) node.style.setProperty(key, value);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter(child => child !== null && child !== undefined && child !== ""));
  return node;
}
const name = code => (LANGUAGES[code] || { name: code }).name;
const own = codes => codes.find(code => code !== "eng_Latn") || codes[0];
const branch = family => family.replace(/^.*: /, "");
const inFull = family => family.includes(": ") ? [h("span", { class: "full" }, family.slice(0, -branch(family).length)), branch(family)] : [family];
const known = value => value !== null && value !== undefined;
const mean = values => { const v = values.filter(known); return v.length ? v.reduce((a, b) => a + b, 0) / v.length : null; };
const plain = (number, digits) => number.toFixed(digits).replace("-", "−");
const show = (task, value) => known(value) ? plain(task.scale * value, task.digits) : "–";
function signed(task, value) {
  const text = show(task, Math.abs(value));
  return Number(text) ? (value > 0 ? "+" : "−") + text : text;
}
const counted = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many || one + "s"}`;
/** A name with places where a line may break; a punctuation mark stays with the part before it. */
const breakable = text => text.replace(/(.{4,}?[-_/+@:= ]+)(?=.{4})/g, "$1\n").split("\n").flatMap((part, i) =>
  [i ? h("wbr") : "", part.length < 24 ? h("span", { class: "whole" }, part) : part]);
const named = (m, kind = "name") => h("span", { class: "named" }, swatch(m), h("span", { class: kind }, breakable(MODELS[m].name)));
const swatch = m => h("i", { class: `dot m${m % HUES} g${m % SHAPES}`, "aria-hidden": "true" });
const short = (text, length) => text.length > length ? `${text.slice(0, length - 1)}…` : text;
const kindOf = task => task.brief ? `${task.name} (${short(task.brief, 40)})` : task.name;
const option = (value, words, selected) => { const node = h("option", { value }, words); node.selected = selected; return node; };

/** What a paired test says: 0 not significant, 1 better, -1 worse. */
function verdict(task, test) {
  if (!test || test[3] >= LEVEL) return 0;
  return (test[0] > 0) === (task.higher !== false) ? 1 : -1;
}
function mark(task, test) {
  const side = verdict(task, test);
  if (!side) return null;
  const title = `${side > 0 ? "better" : "worse"} than ${MODELS[BASE].name}: ${signed(task, test[0])} ` +
    `[${show(task, test[1])}, ${show(task, test[2])}], p = ${String(Number(test[3].toPrecision(2))).replace("-", "−")}`;
  return h("abbr", { class: side > 0 ? "up" : "down", title }, side > 0 ? "▴" : "▾");
}
/** The task with the direction of the chosen metric: a task scored by accuracy may have metrics for which lower is better. */
const inMetric = task => task.metrics.some(m => m.name === state.metric && m.higher === false) ? { ...task, higher: false } : task;
/** Values of a row in the chosen metric; tests exist only for the main metric. */
const valuesOf = (task, row) => state.metric && state.metric !== task.metrics[0].name ? row.other[state.metric] || [] : row.values;
const testsOf = (task, row) => valuesOf(task, row) === row.values && row.tests || [];
/** A round step and the ends of an axis around the values. */
function axis(low, high, bound) {
  const span = Math.max(high - low, 1e-9), power = 10 ** Math.floor(Math.log10(span));
  const step = [0.2, 0.5, 1, 2, 5].map(s => s * power).find(s => span / s <= 5);
  const ends = [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
  return { low: bound ? Math.max(ends[0], bound[0]) : ends[0], high: bound ? Math.min(ends[1], bound[1]) : ends[1], step };
}
const place = (scale, value) => 100 * (value - scale.low) / (scale.high - scale.low || 1);

// ---- theme: system, until someone chooses
$("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch (e) { /* a file may have no storage */ }
});

// ---- the tables that came with the page: folding and sorting
for (const button of document.querySelectorAll("button.fold")) {
  const body = button.closest("tbody");
  if (!body.querySelector("tr.group")) { button.disabled = true; continue; }
  button.addEventListener("click", () => button.setAttribute("aria-expanded", body.classList.toggle("open")));
}
for (const table of document.querySelectorAll("table.scores")) {
  const heads = [...table.tHead.rows[0].cells], first = [...table.tBodies];
  heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
    // first click: texts from A, scores from the best; second: the opposite order; third: the original order
    const [once, twice] = column ? ["descending", "ascending"] : ["ascending", "descending"];
    const next = { none: once, [once]: twice, [twice]: "none" }[head.getAttribute("aria-sort")];
    heads.forEach(other => other.querySelector("button") && other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", next);
    const turn = next === "descending" ? -1 : 1, cell = body => body.rows[0].cells[column];
    const good = body => Number(cell(body).dataset.good ?? NaN), gone = body => isNaN(good(body));
    const order = (a, b) => column ? gone(a) - gone(b) || (gone(a) ? 0 : turn * (good(a) - good(b))) : turn * cell(a).textContent.localeCompare(cell(b).textContent);
    table.append(...(next === "none" ? first : [...first].sort(order)));
  }));
}

// ---- language by language
function groupsOf(task) {
  const key = { family: l => l.family, script: l => l.script, none: () => "" }[state.order];
  const wanted = state.find.trim().toLowerCase(), found = new Map();
  for (const row of task.rows) {
    const language = LANGUAGES[own(row.languages)];
    if (wanted && !`${row.title} ${row.name} ${language.family}`.toLowerCase().includes(wanted)) continue;
    const group = key(language);
    if (!found.has(group)) found.set(group, []);
    found.get(group).push(row);
  }
  const by = state.sort === null ? BASE : state.sort, turn = rising(task, by) ? -1 : 1;
  const compared = row => state.mode === "difference" && by !== BASE ? gap(task, row, by) : valuesOf(task, row)[by];
  const order = (a, b) => state.sort === "name" ? -turn * a.title.localeCompare(b.title)
    : !known(a.v) ? 1 : !known(b.v) ? -1 : turn * (b.v - a.v) || a.title.localeCompare(b.title);
  const groups = [...gathered(found)].map(([title, rows]) => {
    const sorted = rows.map(row => ({ row, title: row.title, v: compared(row) })).sort(order).map(one => one.row);
    return { title, rows: sorted, v: mean(sorted.map(compared)) };
  });
  return groups.sort((a, b) => (a.title === ALONE) - (b.title === ALONE) || (state.sort === null ? a.title.localeCompare(b.title) : order(a, b)));
}
/** Whether a column is sorted in ascending order: first texts from A and scores from the best; the user can reverse this. */
const rising = (task, key) => (key === "name" || task.higher === false) !== state.turned;
/** The groups, where those of a single row are joined into one: a heading for each of them would be of little use. */
function gathered(groups) {
  const alone = [...groups].filter(([, rows]) => rows.length < 2), rows = alone.flatMap(([, of]) => of);
  return alone.length < 2 ? groups : new Map([...[...groups].filter(([, of]) => of.length > 1), [ALONE, rows]]);
}
function gap(task, row, model) {
  const values = valuesOf(task, row);
  return known(values[model]) && known(values[BASE]) ? values[model] - values[BASE] : null;
}
/** The columns that have anything to show in a task. */
const columnsOf = task => MODELS.map((_, m) => m).filter(m => task.rows.some(row => known(valuesOf(task, row)[m])));

function drawRows() {
  const task = inMetric(TASKS[state.task]), columns = columnsOf(task), groups = groupsOf(task);
  const difference = state.mode === "difference" && columns.length > 1 && columns.includes(BASE);
  const others = columns.filter(m => m !== BASE), all = task.rows;
  let scale;
  if (difference) {
    const ends = all.flatMap(row => others.flatMap(m => testsOf(task, row)[m] ? testsOf(task, row)[m].slice(0, 3) : [gap(task, row, m)])).filter(known);
    scale = axis(Math.min(0, ...ends), Math.max(0, ...ends));
  } else {
    const values = all.flatMap(row => valuesOf(task, row)).filter(known);
    scale = axis(Math.min(...values), Math.max(...values), task.scale === 100 && Math.min(...values) >= 0 ? [0, 1] : null);
  }
  const lines = [];
  for (let tick = scale.low; tick <= scale.high + 1e-9; tick += scale.step) lines.push(tick);
  const zero = difference ? Math.max(0, lines.findIndex(tick => Math.abs(tick) < 1e-9)) : 0;
  const few = lines.length > 4 ? lines.filter((_, i) => (i - zero) % 2 === 0) : lines;
  const ticks = h("div", { class: "ticks", "aria-hidden": "true" }, few.map(tick =>
    h("span", { "--x": place(scale, tick) }, difference && Math.abs(tick) > 1e-9 ? signed({ ...task, digits: tidy(task, scale) }, tick) : show({ ...task, digits: tidy(task, scale) }, Math.abs(tick) < 1e-9 ? 0 : tick))));
  const head = h("tr", null, heading(task, task.matrix || task.panel ? "Language" : "Languages", "name"), h("th", { scope: "col", class: "plot" }, ticks),
    columns.map(m => heading(task, named(m, "name full"), m)));
  const table = h("table", { class: `grid rows${difference ? " diff" : ""}`, "--step": place(scale, scale.low + scale.step), "--zero": place(scale, 0) },
    h("thead", null, head));
  const folded = groups.length > 1 && all.length > FOLDED && !state.find;
  for (const group of groups) {
    const body = h("tbody");
    if (state.order !== "none" && groups.length > 1) {
      const toggle = h("button", { type: "button", class: "fold", "aria-expanded": String(!folded), title: group.title }, inFull(group.title));
      toggle.addEventListener("click", () => toggle.setAttribute("aria-expanded", String(!body.classList.toggle("folded"))));
      body.classList.toggle("folded", folded);
      const means = columns.map(m => mean(group.rows.map(row => valuesOf(task, row)[m])));
      body.append(h("tr", { class: "family" }, h("th", { scope: "rowgroup" }, toggle, " ", h("small", null, String(group.rows.length))),
        h("td", { class: "plot" }, difference ? "" : track(task, scale, columns, means)),
        columns.map((m, i) => h("td", { class: "num" }, difference && m !== BASE && known(means[i]) && known(means[columns.indexOf(BASE)]) ? signed(task, means[i] - means[columns.indexOf(BASE)]) : show(task, means[i]), h("span", { class: "mark" })))));
    }
    for (const row of group.rows) body.append(line(task, row, columns, scale, difference, group.title === ALONE && state.order === "family" ? branch(LANGUAGES[own(row.languages)].family) : ""));
    table.append(body);
  }
  $("rows").replaceChildren(groups.length ? table : h("p", { class: "note" }, all.length ? "No language contains that." : "Not measured language by language."));
  say(task, columns, others);
}
const tidy = (task, scale) => Math.max(0, Math.min(3, -Math.floor(Math.log10(task.scale * scale.step) + 1e-9)));

function heading(task, content, key) {
  const sorted = state.sort === key ? (rising(task, key) ? "ascending" : "descending") : "none";
  const turn = () => {
    state.turned = state.sort === key && !state.turned;
    state.sort = key;
    drawRows();
    document.querySelector(`#rows th[data-key="${key}"] button`).focus();
  };
  return h("th", { scope: "col", class: key === "name" ? null : "num", "aria-sort": sorted, "data-key": key },
    h("button", { type: "button", class: "sort", onclick: turn }, content));
}
function line(task, row, columns, scale, difference, family) {
  const values = valuesOf(task, row), tests = testsOf(task, row);
  const cells = columns.map(m => {
    const value = difference && m !== BASE ? (known(gap(task, row, m)) ? signed(task, gap(task, row, m)) : "–") : show(task, values[m]);
    const best = values === row.values && (row.best || []).includes(m) && !difference;
    return h("td", { class: `num${best ? " best" : ""}${known(values[m]) ? "" : " none"}` }, h("span", { class: "value" }, value), h("span", { class: "mark" }, mark(task, tests[m])));
  });
  const label = (row.pairs ? `${row.title}: ${counted(row.pairs, "item")}` : row.title) + (known(row.chance) ? `, by chance ${show(task, row.chance)}` : "");
  return h("tr", null, h("th", { scope: "row", title: `${row.name} · ${label}` }, row.title, family && family !== row.title ? h("small", null, family) : null),
    h("td", { class: "plot" }, difference ? differences(task, row, columns, scale) : track(task, scale, columns, columns.map(m => values[m]), values === row.values ? row.chance : null)), cells);
}
/** The models' dots, and a mark at the score of guessing. */
function track(task, scale, columns, values, chance = null) {
  const shown = values.map((value, i) => [value, columns[i]]).filter(([value]) => known(value));
  const places = shown.map(([value]) => place(scale, value));
  return h("div", { class: "track" }, h("b", { "--a": Math.min(...places), "--b": Math.max(...places) }),
    known(chance) ? h("s", { class: chance < scale.low || chance > scale.high ? "beyond" : null, "--x": place(scale, Math.min(scale.high, Math.max(scale.low, chance))), title: `by chance ${show(task, chance)}` }) : null,
    shown.map(([value, m], i) => h("i", { class: `dot m${m % HUES} g${m % SHAPES}`, "--x": places[i], title: `${MODELS[m].name} ${show(task, value)}` })));
}
function differences(task, row, columns, scale) {
  return h("div", { class: "track bars" }, columns.filter(m => m !== BASE).map(m => {
    const value = gap(task, row, m), test = testsOf(task, row)[m];
    if (!known(value)) return h("span");
    const ends = [place(scale, Math.min(0, value)), place(scale, Math.max(0, value))];
    return h("span", { class: `m${m % HUES}${verdict(task, test) ? "" : " weak"}`, title: `${MODELS[m].name} ${signed(task, value)}` },
      h("i", { "--a": ends[0], "--b": ends[1] }), test ? h("u", { "--a": place(scale, test[1]), "--b": place(scale, test[2]) }) : null);
  }));
}
/** The number of rows, of ``most``, that a test marks by chance if models are equal: ``most`` times the level; it may be less than one. */
const byChance = most => LEVEL * most < 1 ? `one in ${Math.round(1 / LEVEL)}, less than one of these ${most},` : `about ${Math.round(LEVEL * most)} of ${most}`;
/** How many languages differ from the baseline, and how many would by chance. */
function say(task, columns, others) {
  const lines = [];
  let most = 0;
  if (state.metric === "" || state.metric === task.metrics[0].name) {
    for (const m of others) {
      const tests = task.rows.map(row => (row.tests || [])[m]).filter(Boolean);
      if (!tests.length) continue;
      const sides = tests.map(test => verdict(task, test)), count = side => sides.filter(s => s === side).length;
      most = Math.max(most, tests.length);
      lines.push(h("li", null, named(m), " ", h("span", { class: "up" }, `▴ ${count(1)}`), " ", h("span", { class: "down" }, `▾ ${count(-1)}`), h("span", { class: "soft" }, ` of ${tests.length}`)));
    }
  }
  const better = task.higher === null ? "" : task.higher ? "Higher is better. " : "Lower is better. ";
  const what = task.matrix && !task.panel ? "A language's score is the mean over its pairs, both ways. " : "";
  const chance = lines.length ? `Below: rows significantly better ▴ or worse ▾ than ${MODELS[BASE].name}; if the models were equal, ${byChance(most)} would be marked by chance.` : "";
  $("task-note").replaceChildren(h("p", { class: "note" }, better, task.definition ? `${task.definition[0].toUpperCase()}${task.definition.slice(1)}. ` : "", what, chance), h("ul", { class: "legend" }, lines));
}

// ---- heat map
function drawMap() {
  const task = inMetric(TASKS[state.task]), bar = $("map-bar"), columns = columnsOf(task);
  if (!columns.includes(state.model)) state.model = columns[0] ?? 0;
  bar.replaceChildren();
  const choose = (words, key, options) => bar.append(h("label", null, words, " ", h("select", { onchange: e => { state[key] = key === "model" ? Number(e.target.value) : e.target.value; drawMap(); } },
    options.map(([value, text]) => option(value, text, String(state[key]) === String(value))))));
  $("map-task").textContent = `${kindOf(task)}: ${task.metrics.find(m => m.name === (state.metric || task.metrics[0].name)).label}`;
  $("readout").textContent = columns.length ? "Point at a cell, or move with the arrow keys." : "";
  if (!task.pairs.length) { tiles(task, columns); return; }
  choose("Model", "model", columns.map(m => [m, MODELS[m].name]));
  if (columns.length > 1 && columns.includes(BASE)) {
    const box = h("input", { type: "checkbox", onchange: e => { state.diff = e.target.checked; drawMap(); } });
    box.checked = state.diff && state.model !== BASE;
    box.disabled = state.model === BASE;
    bar.append(h("label", { class: "check" }, box, ` minus ${MODELS[BASE].name}`));
  }
  const codes = [...new Set(task.pairs.flatMap(pair => pair.languages))].sort((a, b) =>
    LANGUAGES[a].family.localeCompare(LANGUAGES[b].family) || name(a).localeCompare(name(b)));
  const families = [...new Set(codes.map(code => LANGUAGES[code].family))];
  const many = codes.length > WIDE;
  if (many) for (const [words, key] of [["From", "from"], ["to", "to"]])
    choose(words, key, [["", "all families"], ...families.map(f => [f, f])]);
  const side = key => !many ? codes.map(code => [code, name(code), LANGUAGES[code].family])
    : state[key] && families.includes(state[key]) ? codes.filter(code => LANGUAGES[code].family === state[key]).map(code => [code, name(code), ""])
    : families.map(family => [family, branch(family), ""]);
  matrix(task, side("from"), side("to"), codes);
}
function matrix(task, from, to, codes) {
  const diff = state.diff && state.model !== BASE, sums = new Map();
  const ids = (code, side) => side.some(([id]) => id === code) ? code : LANGUAGES[code].family;
  for (const pair of task.pairs) {
    const value = diff ? gap(task, pair, state.model) : valuesOf(task, pair)[state.model];
    if (!known(value)) continue;
    const key = `${ids(pair.languages[0], from)}\n${ids(pair.languages[1], to)}`;
    const sum = sums.get(key) || { total: 0, n: 0, test: (testsOf(task, pair))[state.model] };
    sum.total += value; sum.n += 1;
    sums.set(key, sum);
  }
  const wanted = new Set(from.flatMap(([a]) => to.map(([b]) => `${a}\n${b}`)));
  const shown = [...sums].filter(([key]) => wanted.has(key)).map(([, s]) => s.total / s.n);
  const range = spread(task, shown, diff);
  const head = h("tr", null, h("th", { class: "corner" }, "from ↓ to →"), to.map(([, words, family], i) =>
    h("th", { scope: "col", class: family && i && family !== to[i - 1][2] ? "edge" : null }, h("span", null, words))));
  const rows = from.map(([a, words, family], r) => h("tr", { class: family && r && family !== from[r - 1][2] ? "edge" : null }, h("th", { scope: "row" }, words),
    to.map(([b, other, of], c) => {
      const sum = sums.get(`${a}\n${b}`), edge = of && c && of !== to[c - 1][2] ? " edge" : "";
      if (!sum) return h("td", { class: "none" + edge });
      const value = sum.total / sum.n, test = sum.n === 1 && diff ? sum.test : null, side = verdict(task, test);
      const text = `${words} → ${other}: ${diff ? signed(task, value) : show(task, value)}${task.scale === 100 ? " %" : ""}` +
        (sum.n > 1 ? ` (mean of ${sum.n} pairs)` : "") + (test ? side ? ", significant" : ", not significant" : "");
      return cell(value, range, diff ? signed({ ...task, digits: 0 }, value) : plain(task.scale * value, task.scale === 100 ? (task.higher === false ? 1 : 0) : 2), text, edge + (test && !side ? " weak" : ""));
    })));
  // the numbers do not fit into narrow cells; if the user points at a cell, its number is shown
  const table = h("table", { class: `heat${to.length > 32 ? " dense" : ""}`, "--n": to.length, "aria-label": `${kindOf(task)}, ${MODELS[state.model].name}` }, h("thead", null, head), h("tbody", null, rows));
  $("heat").replaceChildren(h("div", { class: "pane", tabindex: "-1" }, table));
  legend(task, range, diff);
  roving(table);
}
function spread(task, values, diff) {
  if (!values.length) return { low: 0, high: 1, diff };
  if (diff) { const most = Math.max(...values.map(Math.abs), 1e-6); return { low: -most, high: most, diff, flip: task.higher === false }; }
  return { low: Math.min(...values), high: Math.max(...values), diff, flip: task.higher === false };
}
/** A cell whose depth of color shows how good the value is, from 0 to 100; for differences, 50 means no difference. */
function cell(value, range, words, text, edge) {
  let depth = range.high > range.low ? 100 * (value - range.low) / (range.high - range.low) : 50;
  if (range.flip) depth = 100 - depth;
  const kind = range.diff ? (depth < 50 ? "minus" : "plus") : "seq";
  const strength = range.diff ? Math.abs(depth - 50) * 2 : depth;
  return h("td", { class: `${kind}${strength > DEEP ? " deep" : ""}${edge || ""}`, "--v": strength.toFixed(1), "data-text": text, tabindex: "-1" }, h("span", null, words));
}
function legend(task, range, diff) {
  const ends = range.flip ? [range.high, range.low] : [range.low, range.high];
  $("scale").replaceChildren(h("span", null, diff ? signed(task, ends[0]) : show(task, ends[0])), h("i", { class: diff ? "diverging" : "sequential" }), h("span", null, diff ? signed(task, ends[1]) : show(task, ends[1])),
    h("span", { class: "soft" }, diff ? `minus ${MODELS[BASE].name}; pale numbers are not significant` : task.higher === null ? "" : "more color is better"));
}
/** Languages against models, in columns of families. */
function tiles(task, columns) {
  const values = task.rows.flatMap(row => valuesOf(task, row)).filter(known), range = spread(task, values, false);
  const groups = new Map();
  for (const row of [...task.rows].sort((a, b) => a.title.localeCompare(b.title))) {
    const family = LANGUAGES[own(row.languages)].family;
    if (!groups.has(family)) groups.set(family, []);
    groups.get(family).push(row);
  }
  const together = [...gathered(groups)].sort(([a], [b]) => (a === ALONE) - (b === ALONE) || a.localeCompare(b));
  // short tables, so that the columns get similar heights; each table shows the models' marks
  const pieces = together.flatMap(([family, rows]) => rows.flatMap((_, i) => i % ROWS ? [] : [[i ? "…" : family, rows.slice(i, i + ROWS)]]));
  const blocks = pieces.map(([family, rows]) => h("table", { class: "heat tile" },
    h("thead", null, h("tr", null, h("th", { scope: "colgroup", title: family }, inFull(family)), columns.map(m => h("th", { scope: "col", title: MODELS[m].name }, swatch(m))))),
    h("tbody", null, rows.map(row => h("tr", null, h("th", { scope: "row", title: `${row.name} · ${LANGUAGES[own(row.languages)].family}` }, row.title), columns.map(m => {
      const value = valuesOf(task, row)[m];
      return known(value) ? cell(value, range, show(task, value), `${row.title}, ${MODELS[m].name}: ${show(task, value)}`) : h("td", { class: "none" });
    }))))));
  $("heat").replaceChildren(h("div", { class: "tiles", "--n": columns.length }, blocks));
  if (values.length) legend(task, range, false); else $("scale").replaceChildren();
  for (const table of $("heat").querySelectorAll("table")) roving(table);
}
/** One tab stop per table; arrow keys move, and what a cell holds is read out. */
function roving(table) {
  const start = table.querySelector("td[data-text]");
  if (start) start.tabIndex = 0;
  const read = node => { const found = node.closest && node.closest("td[data-text]"); if (found) $("readout").textContent = found.dataset.text; };
  table.addEventListener("pointerover", event => read(event.target));
  table.addEventListener("focusin", event => read(event.target));
  table.addEventListener("click", event => read(event.target));
  table.addEventListener("keydown", event => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const here = event.target.closest("td");
    if (!move || !here) return;
    event.preventDefault();
    let row = here.parentNode.rowIndex, column = here.cellIndex, next = null;
    do { row += move[0]; column += move[1]; next = table.rows[row] && table.rows[row].cells[column]; } while (next && !next.dataset.text && next.tagName === "TD");
    if (next && next.dataset.text) { here.tabIndex = -1; next.tabIndex = 0; next.focus(); }
  });
}

// ---- wrong results
function words(text) {
  if (!("Segmenter" in Intl)) return text.split(/(\s+)/);
  return [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)].map(one => one.segment);
}
const fold = word => word.normalize("NFKC").toLowerCase();
/** The text, in which the words that the other text lacks are marked; no word is marked if the texts share hardly any. */
function marked(text, other) {
  const there = new Set(words(other).map(fold)), parts = words(text), letters = parts.filter(word => /[\p{L}\p{N}]/u.test(word));
  const fresh = letters.filter(word => !there.has(fold(word)));
  if (!letters.length || fresh.length > 0.6 * letters.length) return [text];
  return parts.map(word => /[\p{L}\p{N}]/u.test(word) && !there.has(fold(word)) ? h("mark", null, word) : word);
}
const passage = (code, ...content) => h("q", { dir: "auto", lang: code.split("_")[0], class: RTL.has((LANGUAGES[code] || {}).script) ? "rtl" : null }, ...content);
function found() {
  const text = state.eFind.trim().toLowerCase();
  return WRONG.filter(one => (state.eTask === "" || one.task === Number(state.eTask))
    && (!state.eLanguage || one.language === state.eLanguage || one.found.some(f => f.language === state.eLanguage))
    && (state.eModel === "" || (state.eModel === "all" ? one.found.length > 1 && !one.right.length : one.found.some(f => f.model === Number(state.eModel))))
    && (!text || [one.query, one.expected, ...one.found.map(f => f.text)].some(t => t.toLowerCase().includes(text))));
}
function card(one) {
  const task = TASKS[one.task], target = one.found[0].language;
  const answer = m => {
    const f = one.found.find(entry => entry.model === m);
    if (!f && !one.right.includes(m)) return null;
    const scores = f ? h("span", { class: "score", title: `${one.measure} of the retrieved text, and of the expected text` }, plain(f.score, 3), " ", h("span", { class: "soft" }, known(f.expected) ? `instead of ${plain(f.expected, 3)}` : "expected not ranked")) : null;
    return h("div", { class: f ? "answer wrong" : "answer" }, h("dt", null, named(m)),
      h("dd", null, f ? [passage(f.language, marked(f.text, one.expected)), f.language !== target || task.panel ? h("small", null, name(f.language)) : null, scores] : h("span", { class: "found" }, "found it")));
  };
  return h("li", { class: "card" },
    h("p", { class: "where" }, h("b", { title: task.settings }, task.name), ` ${name(one.language)} → ${name(target)}`, h("span", { class: "soft" }, ` ${one.measure} · item ${one.item + 1}`)),
    h("dl", null, h("div", { class: "given" }, h("dt", null, "Query"), h("dd", null, passage(one.language, one.query))),
      h("div", { class: "given" }, h("dt", null, "Expected"), h("dd", null, passage(target, one.expected))), MODELS.map((_, m) => answer(m))));
}
function drawErrors() {
  const all = found();
  $("e-note").textContent = all.length ? `${counted(all.length, "query", "queries")}${all.length > state.shown ? `, the first ${state.shown} shown` : ""}.` : "No query matches these choices.";
  $("cards").replaceChildren(...all.slice(0, state.shown).map(card));
  $("more").hidden = all.length <= state.shown;
}
function fillErrors() {
  const tasks = [...new Set(WRONG.map(one => one.task))];
  $("e-task").replaceChildren(option("", "all", state.eTask === ""), ...tasks.map(t => option(t, kindOf(TASKS[t]), String(t) === state.eTask)));
  const here = WRONG.filter(one => state.eTask === "" || one.task === Number(state.eTask));
  const codes = [...new Set(here.flatMap(one => [one.language, ...one.found.map(f => f.language)]))].sort((a, b) => name(a).localeCompare(name(b)));
  if (!codes.includes(state.eLanguage)) state.eLanguage = "";
  $("e-language").replaceChildren(option("", "all", !state.eLanguage), ...codes.map(code => option(code, name(code), code === state.eLanguage)));
  const wrong = [...new Set(WRONG.flatMap(one => one.found.map(f => f.model)))].sort((a, b) => a - b);
  $("e-model").replaceChildren(option("", "any model", state.eModel === ""), ...(wrong.length > 1 ? [option("all", "every model", state.eModel === "all")] : []), ...wrong.map(m => option(m, MODELS[m].name, String(m) === state.eModel)));
}

// ---- choices, kept in the address so that a view can be passed on
function fill() {
  const task = TASKS[state.task];
  const groups = [["Tasks", t => !t.panel], ["Language-agnosticism", t => t.panel]].map(([label, of]) =>
    h("optgroup", { label }, TASKS.map((t, i) => of(t) && t.rows.length ? option(i, kindOf(t), i === state.task) : null))).filter(g => g.children.length);
  $("task").replaceChildren(...groups);
  if (!task.metrics.some(m => m.name === state.metric)) state.metric = "";
  $("metric").replaceChildren(...task.metrics.map((m, i) => option(i ? m.name : "", m.label, state.metric === (i ? m.name : ""))));
  $("metric").disabled = task.metrics.length < 2;
  for (const key of ["order", "mode"]) $(key).value = state[key];
  $("mode").disabled = columnsOf(task).length < 2;
}
const KEPT = ["task", "metric", "order", "mode", "eTask", "eLanguage", "eModel"];
function remember() {
  const parts = KEPT.filter(key => state[key] !== "").map(key => `${key}=${encodeURIComponent(state[key])}`);
  try { history.replaceState(null, "", `#${parts.join("&")}`); } catch (e) { /* some browsers refuse this for a page that is a local file */ }
}
for (const part of location.hash.slice(1).split("&")) {
  const [key, value] = part.split("=");
  if (KEPT.includes(key) && value !== undefined) state[key] = key === "task" ? Math.min(Math.max(0, Number(value) || 0), TASKS.length - 1) : decodeURIComponent(value);
}
const draw = () => { fill(); drawRows(); drawMap(); };
$("task").addEventListener("change", event => { state.task = Number(event.target.value); state.from = state.to = ""; draw(); remember(); });
for (const key of ["metric", "order", "mode"]) $(key).addEventListener("change", event => { state[key] = event.target.value; draw(); remember(); });
$("find").addEventListener("input", event => { state.find = event.target.value; drawRows(); });
for (const [id, key] of [["e-task", "eTask"], ["e-language", "eLanguage"], ["e-model", "eModel"]])
  $(id).addEventListener("change", event => { state[key] = event.target.value; state.shown = CARDS; fillErrors(); drawErrors(); remember(); });
$("e-find").addEventListener("input", event => { state.eFind = event.target.value; state.shown = CARDS; drawErrors(); });
$("more").addEventListener("click", () => { state.shown += CARDS; drawErrors(); });
draw();
if (WRONG.length) { fillErrors(); drawErrors(); }
})();
