
"use strict";
// What all pages do: ask for status.json every few seconds and show it. Text from the engine only ever becomes
// text nodes.

const REFRESH_MS = 5000;
const UNKNOWN = "not known";

const count = (value) => (value === null ? UNKNOWN : Math.round(value).toLocaleString("en-US"));

function size(value) {
  if (value === null) return UNKNOWN;
  const units = ["B", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

function duration(value) {
  if (value === null) return UNKNOWN;
  if (value < 10) return `${value.toFixed(1)} s`;
  for (const [unit, length] of [["days", 86400], ["h", 3600], ["min", 60]]) {
    if (value >= 2 * length) return `${(value / length).toFixed(1)} ${unit}`;
  }
  return `${Math.round(value)} s`;
}

const perSecond = (value) => (value === null ? UNKNOWN : `${value >= 10 ? count(value) : value.toFixed(1)}/s`);
const bytesPerSecond = (value) => (value === null ? UNKNOWN : `${size(value)}/s`);
const percent = (value) => (value === null ? UNKNOWN : `${(100 * value).toFixed(0)} %`);
const clock = (seconds) => new Date(1000 * seconds).toISOString().slice(0, 19).replace("T", " ") + " UTC";

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function table(id, head, rows, empty) {
  const target = document.getElementById(id);
  if (!rows.length) {
    const row = element("tr");
    row.append(element("td", empty));
    target.replaceChildren(row);
    return;
  }
  const header = element("thead"), body = element("tbody"), titles = element("tr");
  for (const [title, isNumber] of head) {
    const cell = element("th", title, isNumber ? "number" : "");
    cell.scope = "col";
    titles.append(cell);
  }
  header.append(titles);
  for (const values of rows) {
    const row = element("tr");
    values.forEach((value, at) => {
      const cell = element("td", undefined, head[at][1] ? "number" : "");
      // A string, which becomes a text node, or an element.
      cell.append(value);
      row.append(cell);
    });
    body.append(row);
  }
  target.replaceChildren(header, body);
}

function judge(text, isGood, title) {
  const verdict = document.getElementById("verdict");
  // Screen readers say each change, so what is the same is left alone.
  if (verdict.textContent !== text) verdict.textContent = text;
  verdict.className = `verdict ${isGood ? "good" : "bad"}`;
  document.title = `${title} · binlog-engine`;
}

// What the sections of all pages begin and end with.
function frame(status, route, now) {
  document.getElementById("problems").replaceChildren(...status.problems.map((line) => element("li", line)));
  document.getElementById("route").textContent = route;
  document.getElementById("updated").textContent = `as of ${clock(now)}`;
}

// Shows the status now and, after a while, the next one.
async function follow(show) {
  try {
    const answer = await fetch("status.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(`the answer is ${answer.status}`);
    show(await answer.json());
  } catch (error) {
    judge(`The engine does not answer (${error.message}); what is below is older`, false, "NO ANSWER");
  }
  setTimeout(follow, REFRESH_MS, show);
}

