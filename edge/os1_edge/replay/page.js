"use strict";
(() => {
  const time = document.getElementById("time");
  const cursor = document.getElementById("cursor");
  const readout = document.getElementById("readout");
  const px = Number(time.dataset.px), left = Number(time.dataset.left);
  const cuts = JSON.parse(time.dataset.cuts);
  const players = [...document.querySelectorAll("audio")];
  const turns = [...document.querySelectorAll(".turn")];
  const markOf = (turn) => document.getElementById(turn.id.replace("turn-", "mark-"));

  /** The session second and the wearer's clock at a place on the timeline. */
  const show = (second) => {
    const at = Math.max(second, 0), cut = cuts.filter((c) => c[0] <= at).pop() || cuts[0];
    const clock = new Date(Date.parse(cut[1] + "Z") + (at - cut[0]) * 1000);
    const text = Number.isNaN(clock.getTime()) ? "" : clock.toISOString().slice(11, 19);
    const whole = Math.floor(at);
    readout.textContent = `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}, clock ${text}`;
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, String(left + at * px));
  };
  const hide = () => {
    readout.textContent = "";
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, "-9");
  };
  const playing = () => players.some((p) => !p.paused);
  time.addEventListener("pointermove", (e) => {
    const box = time.getBoundingClientRect();
    if (!playing()) show(((e.clientX - box.left) * time.viewBox.baseVal.width / box.width - left) / px);
  });
  time.addEventListener("pointerleave", () => { if (!playing()) hide(); });

  for (const turn of turns) {
    const mark = markOf(turn);
    for (const [from, to] of [[turn, mark], [mark, turn]]) {
      for (const event of ["pointerenter", "focusin"]) from.addEventListener(event, () => to.classList.add("on"));
      for (const event of ["pointerleave", "focusout"]) from.addEventListener(event, () => to.classList.remove("on"));
    }
  }

  let all = false;
  players.forEach((player, n) => {
    const turn = player.closest(".turn"), mark = markOf(turn), from = Number(mark.dataset.reply);
    player.addEventListener("play", () => {
      players.forEach((other) => { if (other !== player) other.pause(); });
      turn.classList.add("on");
    });
    player.addEventListener("pause", () => { turn.classList.remove("on"); hide(); });
    player.addEventListener("timeupdate", () => { if (!player.paused) show(from + player.currentTime); });
    player.addEventListener("ended", () => { if (all) play(n + 1); });
  });
  const play = (n) => {
    all = n < players.length;
    if (!all) return;
    players[n].closest(".turn").scrollIntoView({ block: "nearest" });
    players[n].play().catch(() => { all = false; });
  };
  if (players.length > 1) {
    const button = document.createElement("button");
    button.id = "playall";
    button.type = "button";
    button.textContent = "Play all replies";
    button.addEventListener("click", () => play(0));
    document.getElementById("h-turns").after(button);
  }

  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("audio, input, .scroll") || !turns.length) return;
    const step = { j: 1, k: -1 }[e.key];
    if (!step) return;
    const now = turns.findIndex((t) => t.getBoundingClientRect().bottom > 80);
    const goal = turns[Math.min(Math.max((now < 0 ? turns.length : now) + step, 0), turns.length - 1)];
    goal.focus({ preventScroll: true });
    goal.scrollIntoView();
  });
})();
