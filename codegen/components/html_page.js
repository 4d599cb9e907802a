
"use strict";
// Highlight what is of the same tensor or extent as the element under the pointer, or the one that has the focus.
const marked = [...document.querySelectorAll("[data-gives], [data-reads], [data-along]")];
const words = (element, name) => (element.getAttribute("data-" + name) || "").split(" ").filter(Boolean);
let pinned = null;

function show(source) {
  const gives = source ? words(source, "gives") : [];
  const along = source && !gives.length ? words(source, "along") : [];
  const meets = (element, name, wanted) => words(element, name).some((word) => wanted.includes(word));
  for (const element of marked) {
    const isLoop = !words(element, "gives").length;
    const hit = meets(element, "gives", gives) || (isLoop && meets(element, "along", along));
    element.classList.toggle("hit", hit);
    element.classList.toggle("near", !hit && (meets(element, "reads", gives) || meets(element, "along", along)));
  }
}

function pin(source) {
  pinned = pinned === source ? null : source;
  for (const chip of document.querySelectorAll(".chip")) {
    chip.setAttribute("aria-pressed", String(chip === pinned));
  }
  show(pinned);
  for (const pane of document.querySelectorAll(".panes section")) {
    const hit = pane.querySelector(".hit");
    if (hit && !pane.contains(source)) {
      pane.scrollTop += hit.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
    }
  }
}

for (const element of marked) {
  element.addEventListener("mouseover", (event) => {
    event.stopPropagation();
    show(element);
  });
  element.addEventListener("mouseout", () => show(pinned));
  element.addEventListener("focus", () => show(element));
  element.addEventListener("blur", () => show(pinned));
  element.addEventListener("click", () => pin(element));
}

// In a pane the arrow keys go from line to line; Enter pins a line, Escape lets go.
for (const pane of document.querySelectorAll(".panes section")) {
  const lines = [...pane.querySelectorAll("[data-gives], [data-reads], [data-along]")];
  let at = -1;
  pane.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && lines.length && event.target === pane) {
      event.preventDefault();
      if (at >= 0) lines[at].classList.remove("current");
      at = Math.min(Math.max(at + step, 0), lines.length - 1);
      lines[at].classList.add("current");
      lines[at].scrollIntoView({ block: "nearest" });
      show(lines[at]);
    } else if (event.key === "Enter" && at >= 0 && event.target === pane) {
      pin(lines[at]);
    }
  });
  pane.addEventListener("blur", () => {
    if (at >= 0) lines[at].classList.remove("current");
    show(pinned);
  });
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && pinned) pin(pinned);
});

document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("#stages details")) fold.open = true;
});
