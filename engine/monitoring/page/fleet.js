
// The page of a fleet: a line for each source, with a link to the source's own page.

const HEAD = [["source"], ["state"], ["lag", true], ["rows/s", true], ["rows", true], ["last commit", true], ["last error"]];

function pageOf(each) {
  const link = element("a", each.name);
  link.href = each.page;
  return link;
}

function state(each, now) {
  if (each.stage !== "waiting" || each.retry_us === null) return each.stage;
  return `${each.stage}, next attempt in ${duration(Math.max(0, each.retry_us / 1e6 - now))}`;
}

function lastCommit(each, now) {
  if (each.commit === null) return UNKNOWN;
  return each.commit < 0 ? "none yet" : `${each.commit}, ${duration(Math.max(0, now - each.commit_time))} ago`;
}

function show(status) {
  const all = status.sources.length;
  const followed = status.sources.filter((each) => each.stage === "running").length;
  if (status.ready) judge(`Ready: all sources are followed (${all})`, true, "ready");
  else judge(status.live ? `Not ready: ${followed} of ${all} sources are followed` : "Not alive", false, "NOT READY");
  frame(status, `a fleet of ${all} sources`, status.now);
  table("sources", HEAD, status.sources.map((each) => [
    pageOf(each), state(each, status.now), duration(each.lag_seconds), perSecond(each.rows_per_second),
    count(each.rows), lastCommit(each, status.now), each.error ?? "",
  ]), "the fleet is starting");
}

follow(show);
