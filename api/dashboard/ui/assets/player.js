// The recording player: a click on a transcript line seeks to it, the current line is
// marked, and either side can be played alone.
"use strict";
(() => {
  const BARS = 600;
  const MOST_BYTES = 4 << 20; // of a compressed recording: about 18 minutes

  // measure returns the loudness of a recording. The server computes few at a time, so it may ask to try again.
  const measure = async (from, tries) => {
    const answer = await fetch(from);
    if (answer.status === 503 && tries > 1) {
      await new Promise((r) => setTimeout(r, 2000));
      return measure(from, tries - 1);
    }
    if (!answer.ok || answer.redirected) throw new Error("no waveform");
    return answer.json();
  };

  // decode measures a compressed recording, which the server does not decode.
  const decode = async (from) => {
    const answer = await fetch(from);
    if (!answer.ok || answer.redirected || !(Number(answer.headers.get("Content-Length")) <= MOST_BYTES)) {
      answer.body?.cancel();
      throw new Error("no waveform");
    }
    const sound = await new OfflineAudioContext(2, 1, 8000).decodeAudioData(await answer.arrayBuffer());
    const peaks = (side) => {
      const samples = sound.getChannelData(side), all = new Array(BARS).fill(0);
      samples.forEach((v, i) => {
        const bar = Math.floor((i * BARS) / samples.length);
        all[bar] = Math.max(all[bar], 100 * Math.abs(v));
      });
      return all;
    };
    return { seconds: sound.duration, caller: peaks(0), agent: peaks(1) };
  };

  // wave draws the waveform into the lanes, or says that there is none.
  const wave = async (lanes, seconds, audio) => {
    const sound = await (audio.dataset.wave ? measure(audio.dataset.wave, 5) : decode(audio.src)).catch(() => null);
    if (!sound) {
      const note = document.querySelector("[data-no-wave]");
      if (note) note.hidden = false;
      return;
    }
    for (const side of ["caller", "agent"]) {
      const path = lanes.querySelector("path.wave." + side);
      const peaks = sound[side];
      const step = 1000 * sound.seconds / seconds / peaks.length;
      const middle = Number(path.dataset.middle);
      path.setAttribute("d", peaks.map((p, i) => {
        const h = Math.max(0.4, 17 * Math.sqrt(p / 100));
        return `M${((i + 0.5) * step).toFixed(1)} ${(middle - h).toFixed(1)}V${(middle + h).toFixed(1)}`;
      }).join(""));
    }
    lanes.classList.add("has-wave");
  };

  // Space plays and pauses; left and right move by 5 s; s plays the slowest response.
  addEventListener("keydown", (e) => {
    const audio = document.querySelector("audio[data-player]");
    if (!audio || e.ctrlKey || e.metaKey || e.altKey || e.target.closest?.("input, select, textarea, audio, [contenteditable]")) return;
    if (e.key === " " && !e.target.closest?.("button, a, summary")) {
      if (audio.paused) audio.play().catch(() => {});
      else audio.pause();
    } else if (e.key === "s") {
      document.getElementById("slowest")?.click();
    } else if (e.key === "ArrowLeft" || e.key === "ArrowRight") {
      audio.currentTime = Math.max(0, audio.currentTime + (e.key === "ArrowLeft" ? -5 : 5));
    } else return;
    e.preventDefault();
  });

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
    for (const b of document.querySelectorAll("[data-at]")) b.addEventListener("click", () => go(Number(b.dataset.at)));
    const linked = [...lines, document.getElementById("slowest")].find((e) => e && "#" + e.id === location.hash);
    if (linked) {
      const seek = () => { audio.currentTime = Number(linked.dataset.start ?? linked.dataset.at); };
      if (audio.readyState > 0) seek();
      else audio.addEventListener("loadedmetadata", seek, { once: true });
    }
    if (lanes) wave(lanes, seconds, audio);
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
