// The recording player: a click on a transcript line seeks to it, the current line is
// marked, and either side can be played alone.
"use strict";
(() => {
  const begin = () => {
    const audio = document.querySelector("audio[data-player]");
    if (!audio || audio.dataset.ready) return;
    audio.dataset.ready = "yes";
    const lines = [...document.querySelectorAll("#transcript [data-start]")];
    const lanes = document.querySelector("svg.lanes");
    const head = lanes?.querySelector(".head");
    const seconds = Number(lanes?.dataset.seconds);

    const go = (s) => { audio.currentTime = s; audio.play().catch(() => {}); };
    const show = () => {
      const t = audio.currentTime;
      let at = -1;
      lines.forEach((l, i) => { if (Number(l.dataset.start) <= t + 0.05 && t < Number(l.dataset.end) + 0.4) at = i; });
      lines.forEach((l, i) => {
        if (i === at) l.setAttribute("aria-current", "true");
        else l.removeAttribute("aria-current");
      });
      if (head) {
        const x = 1000 * Math.min(1, t / seconds);
        head.setAttribute("x1", x);
        head.setAttribute("x2", x);
      }
    };
    for (const l of lines) l.querySelector("button")?.addEventListener("click", () => go(Number(l.dataset.start)));
    lanes?.addEventListener("click", (e) => {
      const box = lanes.getBoundingClientRect();
      go(seconds * (e.clientX - box.left) / box.width);
    });
    let frame = 0;
    const follow = () => { show(); frame = audio.paused ? 0 : requestAnimationFrame(follow); };
    audio.addEventListener("play", () => { if (!frame) frame = requestAnimationFrame(follow); });
    for (const name of ["seeked", "timeupdate", "ended"]) audio.addEventListener(name, show);

    // Left is the caller, right the agent; a single side plays on both channels.
    let sides = null;
    const choose = (which) => {
      if (!sides && which === "both") return;
      if (!sides) {
        const context = new AudioContext();
        const split = context.createChannelSplitter(2);
        const merge = context.createChannelMerger(2);
        context.createMediaElementSource(audio).connect(split);
        sides = [[0, 0], [0, 1], [1, 0], [1, 1]].map(([from, to]) => {
          const gain = context.createGain();
          split.connect(gain, from);
          gain.connect(merge, 0, to);
          return { from, to, gain };
        });
        merge.connect(context.destination);
        audio.addEventListener("play", () => context.resume());
        context.resume();
      }
      for (const s of sides) s.gain.gain.value = which === "both" ? Number(s.from === s.to) : Number(s.from === (which === "caller" ? 0 : 1));
    };
    for (const b of document.querySelectorAll("[data-side]")) {
      b.addEventListener("click", () => {
        choose(b.dataset.side);
        for (const other of document.querySelectorAll("[data-side]")) other.setAttribute("aria-pressed", String(other === b));
      });
    }
    for (const b of document.querySelectorAll("[data-rate]")) {
      b.addEventListener("click", () => {
        audio.playbackRate = Number(b.dataset.rate);
        for (const other of document.querySelectorAll("[data-rate]")) other.setAttribute("aria-pressed", String(other === b));
      });
    }
  };
  begin();
  document.addEventListener("shown", begin);
})();
