"use strict";
(() => {
  const one = (id) => document.getElementById(id);
  const contracts = [...document.querySelectorAll("#contract-list > details")].map((row) => ({
    row,
    text: row.textContent.toLowerCase(),
  }));
  const scenarios = [...document.querySelectorAll("#scenario-list > details")].map((row) => ({
    row,
    name: [row, ...row.querySelectorAll("bdi[id]")].map((each) => each.id.slice(2).toLowerCase()).join(" "),
    exercised: null,
  }));
  const fields = ["search", "verdict", "area", "level", "scenario"].map(one);
  const [search, verdict, area, level, scenario] = fields;

  function filter() {
    const said = search.value.trim().toLowerCase();
    const named = scenario.value.trim().toLowerCase();
    const states = new Set(["kept", "broken", "known_deviation", "error"]);
    let exercised = null;
    let shownScenarios = 0;
    for (const each of scenarios) {
      const isNamed = named === "" || each.name.includes(named);
      if (named !== "" && isNamed) {
        exercised = (exercised || 0n) | BigInt("0x" + each.row.dataset.of);
      }
      const fits = verdict.value === "" || !states.has(verdict.value) || each.row.dataset.state === verdict.value;
      const isShown = isNamed && fits && (said === "" || each.name.includes(said));
      each.row.hidden = !isShown;
      shownScenarios += isShown;
    }
    let shownContracts = 0;
    for (const { row, text } of contracts) {
      const of = row.dataset;
      const isShown =
        (verdict.value === "" || of.verdict === verdict.value) &&
        (area.value === "" || of.area === area.value) &&
        (level.value === "" || of.level === level.value) &&
        (named === "" || (exercised !== null && ((exercised >> BigInt(of.n)) & 1n) === 1n)) &&
        (said === "" || text.includes(said));
      row.hidden = !isShown;
      shownContracts += isShown;
    }
    one("shown").value = `${shownContracts} of ${contracts.length} contracts, ${shownScenarios} of ${scenarios.length} scenarios`;
  }
  for (const field of fields) field.addEventListener("input", filter);
  const form = document.querySelector(".filters");
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  document.addEventListener("click", (event) => {
    const cell = event.target.closest("button[data-verdict]");
    if (cell === null) return;
    area.value = cell.dataset.area;
    verdict.value = cell.dataset.verdict;
    filter();
    form.scrollIntoView();
  });

  // A link to a contract or scenario opens it, even if a filter hides it.
  function follow() {
    let name = location.hash.slice(1);
    try { name = decodeURIComponent(name); } catch { /* It is taken as it stands. */ }
    const row = name && one(name)?.closest("details");
    if (!row) return;
    row.hidden = false;
    row.open = true;
    row.scrollIntoView();
  }
  window.addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.hash === location.hash) follow();
  });
  follow();
})();
