// Tests run this script in each page before the page's own scripts. It feeds the microphone,
// records what the page plays, and can redirect media. probeOptions: file (use the browser's
// own microphone), port (send media only to this port).
(() => {
  const options = window.probeOptions ?? {};
  const rate = 16000;
  const probe = (window.probe = { events: [], chunks: [], sockets: [], peers: [], loudAt: 0, errors: [] });
  addEventListener("securitypolicyviolation", (e) => probe.errors.push(`${e.violatedDirective} ${e.blockedURI}`));
  addEventListener("error", (e) => probe.errors.push(String(e.message)));
  addEventListener("unhandledrejection", (e) => probe.errors.push(String(e.reason)));

  // The microphone: the audio that tests pass to probe.say, or the browser's file without processing.
  const media = navigator.mediaDevices;
  if (media && !options.asIs) {
    const real = media.getUserMedia.bind(media);
    media.getUserMedia = async () => {
      if (options.file) return real({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
      const context = new AudioContext({ sampleRate: rate }), mouth = context.createMediaStreamDestination();
      const still = context.createConstantSource(); // a microphone sends samples even in silence
      still.offset.value = 0;
      still.connect(mouth);
      still.start();
      probe.say = (text) =>
        new Promise((done) => {
          const pcm = new Int16Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
          const buffer = context.createBuffer(1, pcm.length, rate);
          buffer.getChannelData(0).set(Float32Array.from(pcm, (v) => v / 32768));
          const source = context.createBufferSource();
          source.buffer = buffer;
          source.connect(mouth);
          source.onended = done;
          source.start();
        });
      return mouth.stream;
    };
  }

  // hear records the audio of a track that the page receives.
  function hear(stream) {
    const context = new AudioContext({ sampleRate: rate }), ear = context.createScriptProcessor(512, 1, 1);
    context.createMediaStreamSource(stream).connect(ear);
    ear.connect(context.destination);
    probe.ear = ear; // keeps the processor from garbage collection
    ear.onaudioprocess = (e) => {
      const wave = e.inputBuffer.getChannelData(0);
      probe.chunks.push(Int16Array.from(wave, (v) => Math.max(-1, Math.min(1, v)) * 32767));
      if (Math.sqrt(wave.reduce((sum, v) => sum + v * v, 0) / wave.length) > 0.006) probe.loudAt = performance.now();
    };
  }
  probe.sound = () => {
    const all = new Int16Array(probe.chunks.reduce((n, c) => n + c.length, 0));
    let at = 0;
    for (const c of probe.chunks) all.set(c, at), (at += c.length);
    const bytes = new Uint8Array(all.buffer);
    let text = "";
    for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
    return btoa(text);
  };

  // Functions that wait for a condition.
  probe.until = (is, ms, what) =>
    new Promise((yes, no) => {
      const end = performance.now() + ms;
      const look = () => {
        const got = is();
        if (got) yes(got);
        else if (performance.now() > end) no(new Error(`${what}: not within ${ms} ms; ${JSON.stringify(probe.events.slice(-8))} ${probe.errors} ${document.getElementById("error")?.textContent}`));
        else setTimeout(look, 20);
      };
      look();
    });
  probe.spoke = async (since, still = 700) => {
    await probe.until(() => probe.loudAt > since, 15000, "the agent speaks");
    await probe.until(() => performance.now() - probe.loudAt > still, 15000, "the agent is done");
  };
  probe.watch = (call) => {
    probe.call = call;
    for (const type of ["state", "transcript", "turn", "error", "end"]) call.on(type, (detail) => probe.events.push({ type, at: performance.now(), ...(type === "error" ? { code: detail.code } : type === "turn" ? { turn: detail } : detail) }));
    call.on("level", (l) => (probe.level = { microphone: Math.max(l.microphone, probe.level?.microphone ?? 0), agent: Math.max(l.agent, probe.level?.agent ?? 0) }));
  };
  probe.join = async (ticket, options) => {
    const { Parley } = await import("/rtc/parley.js");
    const began = performance.now();
    try {
      probe.watch(await Parley.join(ticket, options));
    } catch (e) {
      return { code: e.code, message: e.message };
    }
    return { took: performance.now() - began };
  };

  // With options.port, candidates name only that port, such as the port of a relay.
  const Peer = window.RTCPeerConnection;
  window.RTCPeerConnection = class extends Peer {
    constructor(...args) {
      super(...args);
      probe.peers.push(this);
      this.addEventListener("track", (e) => hear(new MediaStream([e.track])));
    }
    setRemoteDescription(d) {
      if (options.port) d = { type: d.type, sdp: d.sdp.replace(/^(a=candidate:\S+ \d \S+ \d+ \S+) \d+ /gm, `$1 ${options.port} `) };
      return super.setRemoteDescription(d);
    }
  };
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (text) {
    if (!probe.sockets.includes(this)) probe.sockets.push(this);
    if (options.port) {
      const m = JSON.parse(text);
      if (m.type === "candidate") return;
      if (m.sdp) text = JSON.stringify({ ...m, sdp: m.sdp.replace(/^a=candidate:.*\r\n/gm, "") });
    }
    send.call(this, text);
  };
})();
