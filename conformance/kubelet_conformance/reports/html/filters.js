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
  }));
  const form = document.querySelector(".filters");
  const selects = [...form.querySelectorAll("select")];
  const [search, scenario] = ["search", "scenario"].map(one);
  const states = new Set(["kept", "broken", "known_deviation", "error"]);

  // What is chosen must be among the words that a row has for it.
  const has = (row, field) => field.value === "" || (row.dataset[field.id] || "").split(" ").includes(field.value);
  const concernsScenarios = (field) => field.id === "change" || (field.id === "verdict" && states.has(field.value));

  function filter() {
    const said = search.value.trim().toLowerCase();
    const named = scenario.value.trim().toLowerCase();
    let exercised = null;
    let shownScenarios = 0;
    for (const { row, name } of scenarios) {
      const isNamed = named === "" || name.includes(named);
      if (named !== "" && isNamed) {
        exercised = (exercised || 0n) | BigInt("0x" + row.dataset.of);
      }
      const fits = selects.every((field) => !concernsScenarios(field) || has(row, field));
      const isShown = isNamed && fits && (said === "" || name.includes(said));
      row.hidden = !isShown;
      shownScenarios += isShown;
    }
    let shownContracts = 0;
    for (const { row, text } of contracts) {
      const isShown =
        selects.every((field) => has(row, field)) &&
        (named === "" || (exercised !== null && ((exercised >> BigInt(row.dataset.n)) & 1n) === 1n)) &&
        (said === "" || text.includes(said));
      row.hidden = !isShown;
      shownContracts += isShown;
    }
    one("shown").value = `${shownContracts} of ${contracts.length} contracts, ${shownScenarios} of ${scenarios.length} scenarios`;
  }
  for (const field of [search, scenario, ...selects]) field.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(filter));
  document.addEventListener("click", (event) => {
    const cell = event.target.closest("button[data-verdict]");
    if (cell === null) return;
    for (const field of selects) field.value = cell.dataset[field.id] || "";
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
  filter();
  follow();
})();
