// The page of `autograder mark`: asks for answers, sends points, and never overwrites unseen ones.
"use strict";

const by = (id) => document.getElementById(id);
const key = document.body.dataset.key;
const said = JSON.parse(document.body.dataset.said);
let answers = [];
let place = 0;
let shown = null;
let busy = false;
const drafts = new Map(); // comments that were typed and not saved, by question and answer

async function ask(path, options = {}) {
  const reply = await fetch(path, { ...options, headers: { "X-Key": key } });
  const tree = await reply.json();
  return { status: reply.status, tree };
}

function say(text, warning = false) {
  by("says").textContent = text;
  by("says").className = warning ? "warning" : "";
}

// A sentence of the page, in its language, with its fields filled in.
const sentence = (name, fields = {}) =>
  said[name].replace(/{(\w+)}/g, (_, field) => fields[field]);

const question = () => by("question").value;
const most = () => Number(by("question").selectedOptions[0].dataset.points);

async function openQuestion() {
  for (const about of document.querySelectorAll(".about"))
    about.hidden = about.dataset.question !== question();
  const { status, tree } = await ask(`answers?question=${encodeURIComponent(question())}`);
  if (status !== 200) return say(tree.says, true);
  answers = tree.answers;
  by("points").replaceChildren(
    ...Array.from({ length: Math.floor(most()) + 1 }, (_, points) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = points;
      button.addEventListener("click", () => save(points, true));
      return button;
    }),
  );
  by("other").max = most();
  const first = answers.findIndex((one) => !one.done);
  await show(first < 0 ? 0 : first);
}

const unsaved = () =>
  shown !== null && by("comment").value !== shown.comment.replaceAll("\r\n", "\n");

function keepDraft() {
  if (unsaved()) drafts.set(shown.key, by("comment").value);
}

async function show(number) {
  keepDraft();
  if (!answers.length) {
    shown = null;
    by("answer").textContent = "";
    by("place").textContent = sentence("nothing");
    return;
  }
  place = (number + answers.length) % answers.length;
  const asked = `answer?question=${encodeURIComponent(question())}&token=${answers[place].token}`;
  const { status, tree } = await ask(asked);
  if (status !== 200) return say(tree.says, true);
  draw(tree);
}

function draw(answer) {
  shown = { ...answer, key: `${question()} ${answer.token}` };
  by("answer").innerHTML = answer.html; // escaped by the server, its formulas MathML
  for (const address of answer.pictures) {
    const picture = document.createElement("img");
    picture.src = address; // made anew from its pixels when it was graded
    picture.alt = sentence("picture");
    by("answer").append(picture);
  }
  by("comment").value = drafts.get(shown.key) ?? answer.comment;
  if (drafts.has(shown.key)) say(sentence("unsaved"), true);
  by("other").value = answer.score ?? "";
  answers[place].done = answer.score !== null;
  for (const button of by("points").children)
    button.setAttribute("aria-pressed", String(Number(button.textContent) === answer.score));
  const done = answers.filter((one) => one.done).length;
  const whose = answer.name ? `, ${answer.name}` : "";
  const [number, all] = [place + 1, answers.length];
  by("place").textContent = sentence("place", { number, all, whose, done });
  by("comments").replaceChildren(
    ...answer.comments.map((text) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.addEventListener("click", () => {
        const before = by("comment").value;
        by("comment").value = before ? `${before}\n${text}` : text;
        by("comment").focus();
      });
      return button;
    }),
  );
}

async function save(points, goOn) {
  if (!shown || busy) return;
  if (!Number.isFinite(points)) return say(sentence("first"), true);
  busy = true;
  try {
    const sent = {
      question: question(),
      token: shown.token,
      points,
      comment: by("comment").value,
      saw: shown.score,
      saw_comment: shown.comment,
      digest: shown.digest,
    };
    const { status, tree } = await ask("answer", { method: "POST", body: JSON.stringify(sent) });
    if (status === 409) {
      const mine = by("comment").value;
      drafts.delete(shown.key);
      draw(tree.now);
      const lost = mine && mine !== tree.now.comment ? sentence("lost", { comment: mine }) : "";
      return say(sentence("yours", { says: tree.says, points }) + lost, true);
    }
    if (status !== 200) return say(tree.says, true);
    drafts.delete(shown.key);
    draw(tree);
    say(sentence("saved", { points, most: most() }));
    if (goOn) await show(place + 1);
  } catch {
    say(sentence("silent"), true);
  } finally {
    busy = false;
  }
}

async function nextUnmarked() {
  for (let step = 1; step <= answers.length; step += 1) {
    const number = (place + step) % answers.length;
    if (!answers[number].done) return show(number);
  }
  say(sentence("all"));
}

const typed = () => (by("other").value === "" ? NaN : Number(by("other").value));
by("question").addEventListener("change", openQuestion);
by("save").addEventListener("click", () => save(typed(), false));
by("previous").addEventListener("click", () => show(place - 1));
by("next").addEventListener("click", () => show(place + 1));
by("unmarked").addEventListener("click", nextUnmarked);
document.addEventListener("keydown", (event) => {
  const writing = ["TEXTAREA", "INPUT", "SELECT"].includes(event.target.tagName);
  if (event.key === "Enter" && event.ctrlKey) return save(typed(), true);
  if (event.key === "Escape" && writing) return event.target.blur();
  if (writing || event.ctrlKey || event.altKey || event.metaKey) return undefined;
  if (/^[0-9]$/.test(event.key) && Number(event.key) <= most()) {
    return save(Number(event.key), true);
  }
  if (event.key === "n") return show(place + 1);
  if (event.key === "p") return show(place - 1);
  if (event.key === "u") return nextUnmarked();
  if (event.key === "c") {
    event.preventDefault();
    by("comment").focus();
  }
  return undefined;
});
window.addEventListener("beforeunload", (event) => {
  if (unsaved() || drafts.size) event.preventDefault();
});
openQuestion();
