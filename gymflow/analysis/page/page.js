"use strict";
// A trajectory is unpacked when it is opened. Everything in it is put in as text; nothing is ever parsed as HTML.
const make = (name, kind, text) => {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
};

const unpacked = async (packed) => {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
};

const block = ([kind, who, text]) => {
  const made = make("div", "block " + kind);
  const body = make("div", "", text);
  body.dir = "auto";
  made.append(make("b", "", who), body);
  return made;
};

const mark = ([level, name, text]) => {
  const made = make("p", "mark " + level);
  made.append(make("b", "", name), text);
  return made;
};

const told = (id, story) => {
  const made = make("div", "story");
  made.append(...story.marks.map(mark), ...story.head.map(block));
  for (const section of story.sections) {
    const turn = make("section", "turn");
    if (typeof section.turn === "number") turn.id = `${id}/turn-${section.turn}`;
    turn.append(make("h4", "", section.title), ...section.blocks.map(block), ...section.marks.map(mark));
    if (section.note) turn.append(make("p", "note", section.note));
    made.append(turn);
  }
  return made;
};

const opened = async (rollout) => {
  const packed = rollout.querySelector("script");
  if (!packed) return;
  packed.remove();
  try {
    rollout.append(told(rollout.id, await unpacked(packed.textContent)));
  } catch (error) {
    rollout.append(make("p", "error", `The trajectory could not be unpacked: ${error.message}`));
  }
};

document.addEventListener("toggle", (event) => {
  if (event.target.open && event.target.matches(".rollout")) opened(event.target);
}, true);

const follow = async () => {
  let name;
  try { name = decodeURIComponent(location.hash.slice(1)); } catch { return; }
  const rollout = document.getElementById(name.split("/")[0]);
  if (!rollout || !rollout.matches(".rollout")) return;
  rollout.hidden = false;
  rollout.closest(".task").hidden = false;
  await opened(rollout);
  rollout.open = true;
  (document.getElementById(name) || rollout).scrollIntoView();
};
addEventListener("hashchange", follow);
addEventListener("DOMContentLoaded", () => {
  follow();
  const words = document.getElementById("words"), kind = document.getElementById("kind"), count = document.getElementById("count");
  if (!words) return;
  const rollouts = [...document.querySelectorAll(".rollout")];
  const texts = rollouts.map((one) => `${one.closest(".task").firstChild.textContent} ${one.firstChild.textContent} ${one.id}`.toLowerCase());
  const sift = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rollouts.forEach((one, at) => {
      one.hidden = (kind.value && one.dataset.kind !== kind.value) || !wanted.every((word) => texts[at].includes(word));
      shown += one.hidden ? 0 : 1;
    });
    for (const task of document.querySelectorAll(".task")) task.hidden = !task.querySelector(".rollout:not([hidden])");
    count.textContent = `${shown} of ${rollouts.length}`;
  };
  let waiting;
  words.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(sift, 120); });
  kind.addEventListener("change", sift);
});
