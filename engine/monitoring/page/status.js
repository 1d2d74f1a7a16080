
// The page of one source.

const HOUR = 3600;
const SHORTEST_SPAN = 300;
const SVG = "http://www.w3.org/2000/svg";

// Plots: the name of a history column, whether to show its growth per second, and how to write a value.
const PLOTS = [
  ["Rows", "rows", true, perSecond],
  ["Transactions", "transactions", true, perSecond],
  ["Binlog received", "received_bytes", true, bytesPerSecond],
  ["Commits", "commits", true, perSecond],
  ["Lag", "lag_seconds", false, duration],
  ["Behind the server's end", "behind_bytes", false, size],
  ["Time in back-pressure", "waited_seconds", true, percent],
  ["Retention headroom", "headroom_seconds", false, duration],
  ["Memory of all processes", "resident_bytes", false, size],
];

function drawn(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function growth(times, values) {
  return values.map((value, at) => {
    const before = at === 0 ? null : values[at - 1];
    if (value === null || before === null) return null;
    return Math.max(0, (value - before) / Math.max(times[at] - times[at - 1], 0.001));
  });
}

function plot(title, times, values, now, write) {
  const width = 280, height = 90, top = 12, bottom = 76;
  const known = values.filter((value) => value !== null);
  const last = values.length ? values[values.length - 1] : null;
  const figure = element("figure");
  const caption = element("figcaption");
  caption.append(element("span", title), element("b", write(last)));
  const most = known.length ? Math.max(...known) : 0;
  const said = known.length ? `now ${write(last)}, at most ${write(most)} in the last hour` : "no values yet";
  const svg = drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${said}` });
  svg.append(drawn("line", { class: "axis", x1: 0, x2: width, y1: bottom, y2: bottom }));
  // Until there is an hour to show, the plot is as wide as what there is.
  const span = Math.min(HOUR, Math.max(SHORTEST_SPAN, now - (times[0] ?? now)));
  const x = (time) => width * (1 - (now - time) / span);
  const y = (value) => bottom - (bottom - top) * (most > 0 ? value / most : 0);
  // A stretch of known values is one curve; values that are not known leave a gap.
  let stretch = [];
  const finish = () => {
    if (stretch.length) {
      const points = stretch.map(([px, py]) => `${px.toFixed(1)},${py.toFixed(1)}`);
      const first = stretch[0][0].toFixed(1), end = stretch[stretch.length - 1][0].toFixed(1);
      svg.append(drawn("polygon", { class: "area", points: [`${first},${bottom}`, ...points, `${end},${bottom}`].join(" ") }));
      svg.append(drawn("polyline", { class: "curve", points: points.join(" ") }));
    }
    stretch = [];
  };
  values.forEach((value, at) => {
    if (value === null || times[at] < now - HOUR) finish();
    else stretch.push([x(times[at]), y(value)]);
  });
  finish();
  if (most > 0) svg.append(drawn("text", { x: 0, y: top - 3 }, write(most)));
  svg.append(drawn("text", { x: 0, y: height - 4 }, `${Math.round(span / 60)} min ago`));
  svg.append(drawn("text", { x: width, y: height - 4, "text-anchor": "end" }, "now"));
  figure.append(caption, svg);
  return figure;
}

function facts(figures) {
  const { server, output, totals } = figures;
  const place = (position) => (position === null ? UNKNOWN : `${position.file}:${position.position}`);
  const left = output.disk_free_bytes === null || figures.disk_left_seconds === null
    ? "" : `, full in ${duration(figures.disk_left_seconds)}`;
  const snapshot = output.snapshot;
  const unfinished = snapshot.waiting + snapshot.running;
  const shown = [
    ["Lag", figures.lag_seconds === 0 ? "0 s: the server has nothing more" : duration(figures.lag_seconds)],
    ["Position", place(figures.position)],
    ["End of the server's binlog", place(server.end)],
    ["Behind it", size(server.behind_bytes)],
    ["Retention headroom", headroom(server)],
    ["Last commit", output.commit < 0 ? "none yet"
      : `${output.commit}, ${duration(Math.max(0, figures.now - output.commit_time))} ago`],
    ["This command", `${count(totals.rows)} rows, ${count(totals.transactions)} transactions, ${size(totals.bytes)}`],
    ["Disk", `${size(output.disk_free_bytes)} free${left}`],
    ["Runs for", `${duration(figures.now - figures.started)}, ${Math.max(0, figures.attempts - 1)} reconnects`],
    ["Tables with unsure definitions", count(output.unsure_tables)],
    ["Tables changed by statement", count(output.rewritten_tables)],
    ["Skipped corrupt events", count(totals.skipped_corrupt_events)],
    ["Snapshots", unfinished
      ? `${unfinished} tables to read, ${count(snapshot.rows)} of about ${count(snapshot.expected_rows)} rows`
      : `${snapshot.done} tables read, ${snapshot.failed} set aside`],
  ];
  if (figures.gtid_set !== null) shown.push(["GTID set", figures.gtid_set, "wide"]);
  if (server.error !== null) shown.push(["The server could not be asked", server.error, "wide"]);
  if (output.error !== null) shown.push(["The output could not be read", output.error, "wide"]);
  document.getElementById("facts").replaceChildren(...shown.map(([name, value, className]) => {
    const pair = element("div", undefined, className);
    pair.append(element("dt", name), element("dd", value));
    return pair;
  }));
}

function headroom(server) {
  if (server.headroom_seconds === null) return UNKNOWN;
  const change = server.headroom_change;
  const course = change === null || Math.abs(change) < 0.01 ? ""
    : change < 0 ? ", shrinking" : ", growing";
  return `${duration(server.headroom_seconds)}, ${size(server.headroom_bytes)}${course}`;
}

function show(status) {
  const { figures, history } = status;
  if (status.ready) judge("Ready: the stream makes progress", true, "ready");
  else judge(status.live ? "Not ready" : "Not alive: a process does not answer", false, "NOT READY");
  const route = `${figures.source || "no server yet"} → ${figures.out}`;
  frame(status, `${route} · version ${figures.version} · run ${figures.run}`, figures.now);
  facts(figures);
  const times = history.time;
  document.getElementById("plots").replaceChildren(...PLOTS.map(([title, name, grows, write]) =>
    plot(title, times, grows ? growth(times, history[name]) : history[name], figures.now, write)));
  table("processes",
    [["process"], ["id", true], ["answered", true], ["memory", true], ["peak", true], ["processor", true], ["open files", true]],
    figures.processes.map((each) => [
      each.name, String(each.pid),
      each.has_reported ? `${duration(each.silent_seconds)} ago` : "starting",
      size(each.resident_bytes), size(each.peak_bytes), duration(each.cpu_seconds), count(each.open_files),
    ]), "no processes");
  document.getElementById("tables-note").textContent = status.table_count > figures.output.tables.length
    ? `the largest ${figures.output.tables.length} of ${count(status.table_count)}` : "";
  table("tables", [["table"], ["rows", true], ["files", true], ["size", true]],
    figures.output.tables.map((each) => [each.name, count(each.rows), count(each.files), size(each.bytes)]),
    "nothing committed yet");
  table("notices", [["time"], ["level"], ["message"]],
    [...figures.notices].reverse().map((each) => [clock(each.time), each.level, each.message]), "none");
}

// A source of a fleet has its page below that of all.
document.getElementById("fleet").hidden = !/\/source\/[^/]+\/$/.test(location.pathname);
follow(show);
