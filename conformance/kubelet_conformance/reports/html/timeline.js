"use strict";
(() => {
  function show(figure, item) {
    const before = figure.querySelector(".on");
    if (before) before.classList.remove("on");
    item.classList.add("on");
    const detail = figure.querySelector(".detail");
    detail.classList.add("full");
    detail.textContent = item.querySelector("title").textContent;
    const bodies = figure.querySelector(".bodies");
    if (bodies === null) return;
    figure.bodies ||= JSON.parse(bodies.textContent);
    const [different, ofItems] = figure.bodies;
    for (const [name, place] of ofItems[item.dataset.n] || []) {
      const body = document.createElement("pre");
      const value = different[place];
      const isCut = typeof value === "string";
      body.textContent = `${name} ${isCut ? value : JSON.stringify(value, null, 2)}`;
      detail.append(body);
    }
  }
  document.addEventListener("pointerover", (event) => {
    const item = event.target.closest(".timeline .i");
    if (item) show(item.closest(".timeline"), item);
  });
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  document.addEventListener("keydown", (event) => {
    const box = event.target.closest(".timeline .scroll");
    if (!box || !(event.key in steps || event.key === "Home" || event.key === "End")) return;
    const items = [...box.querySelectorAll(".i")];
    if (items.length === 0) return;
    const marked = items.indexOf(box.querySelector(".i.first") || box.querySelector(".i.mark"));
    const now = items.findIndex((each) => each.classList.contains("on"));
    let next = now < 0 ? Math.max(marked, 0) : now + (steps[event.key] || 0);
    if (event.key === "Home") next = 0;
    if (event.key === "End") next = items.length - 1;
    const item = items[Math.min(Math.max(next, 0), items.length - 1)];
    show(box.closest(".timeline"), item);
    item.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
    event.preventDefault();
  });

  // The picture of a scenario is text until it is opened.
  function draw(figure) {
    const later = figure.querySelector("script.later");
    if (later === null) return;
    later.parentElement.innerHTML = later.textContent;
  }

  // A timeline begins where its first break is.
  function toBreak(figure) {
    if (!("break" in figure.dataset)) return;
    const box = figure.querySelector(".scroll");
    box.scrollLeft = Math.max(Number(figure.dataset.break) - box.clientWidth / 3, 0);
  }
  document.addEventListener("toggle", (event) => {
    const figure = event.target.open && event.target.querySelector(".timeline");
    if (!figure) return;
    draw(figure);
    toBreak(figure);
  }, true);
  for (const figure of document.querySelectorAll(".hero .timeline")) toBreak(figure);
})();
