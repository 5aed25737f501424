// Loaded before parley.js: a microphone, a peer connection and a socket that tests control.
(() => {
  sessionStorage.clear();
  const harness = (window.harness = { sockets: [], peers: [], tracks: [], permissionRequests: 0 });
  harness.wait = (ms = 0) => new Promise((done) => setTimeout(done, ms));
  harness.until = async (is) => { while (!is()) await harness.wait(); };
  harness.saved = () => JSON.parse(sessionStorage.getItem("parley.call"));
  harness.sent = () => harness.sockets.flatMap((s) => s.sent.map((m) => m.type)).join(" ");

  // The microphone is allowed at once. After harness.delayPermission(), it is allowed when harness.allow() is called.
  harness.prompt = Promise.resolve();
  harness.delayPermission = () => { harness.prompt = new Promise((allow) => { harness.allow = allow; }); };
  // harness.microphoneError is the name of the exception that the browser throws instead.
  harness.constraints = [];
  navigator.mediaDevices.getUserMedia = async ({ audio }) => {
    harness.permissionRequests++;
    harness.constraints.push(audio);
    await harness.prompt;
    if (harness.microphoneError) throw new DOMException("no", harness.microphoneError);
    const deviceId = audio.deviceId?.exact ?? "default";
    if (deviceId === "gone") throw new DOMException("no", "OverconstrainedError");
    const track = Object.assign(new EventTarget(), { enabled: true, stopped: false, stop() { this.stopped = true; }, getSettings: () => ({ deviceId }) });
    harness.tracks.push(track);
    return { getAudioTracks: () => [track], getTracks: () => [track] };
  };

  // The speakers: setSinkId accepts "headset" and "default".
  window.Audio = class {
    sinkId = "";
    muted = false;
    constructor() { harness.audio = this; }
    async setSinkId(id) {
      if (!["headset", "default"].includes(id)) throw new DOMException("no", id === "denied" ? "NotAllowedError" : "NotFoundError");
      this.sinkId = id;
    }
  };

  window.RTCPeerConnection = class {
    connectionState = "new";
    signalingState = "stable";
    constructor() { harness.peers.push(this); }
    addTransceiver() {}
    getSenders() { return []; }
    async createOffer() { return { sdp: "offer" }; }
    async setLocalDescription(d) { this.localDescription = d; this.signalingState = "have-local-offer"; }
    async setRemoteDescription() {
      await harness.wait(); // asynchronous, as in browsers
      if (this.signalingState === "stable") throw new DOMException("wrong state", "InvalidStateError");
      this.signalingState = "stable";
    }
    close() { this.connectionState = "closed"; }
    connect() { this.connectionState = "connected"; this.onconnectionstatechange?.(); }
  };

  // harness.service receives each message that a socket sends, and answers with the socket's say().
  window.WebSocket = class {
    static OPEN = 1;
    readyState = 0;
    sent = [];
    constructor(url) {
      if (!/^wss?:/.test(url)) throw new DOMException("invalid WebSocket URL", "SyntaxError");
      harness.sockets.push(this);
      setTimeout(() => { this.readyState = 1; this.onopen?.(); });
    }
    send(text) { this.sent.push(JSON.parse(text)); harness.service(this, JSON.parse(text)); }
    say(m) { this.onmessage?.({ data: JSON.stringify(m) }); }
    close() { if (this.readyState < 2) { this.readyState = 3; setTimeout(() => this.onclose?.()); } }
  };
  harness.accepts = (ws, m) => {
    if (m.type !== "join") return;
    ws.say({ type: "answer", sdp: "answer", call_id: "call", resume: "secret" + harness.sockets.length });
    harness.peers.at(-1).connect();
    ws.say({ type: "ready" });
  };
  harness.refuses = (code) => (ws, m) => { if (m.type === "join") { ws.say({ type: "error", code, message: "text from the service" }); ws.close(); } };
  harness.service = (ws, m) => setTimeout(() => harness.accepts(ws, m));

  harness.join = async (ticket = { token: "t", url: "ws://harness/rtc" }, options = {}) => {
    const { Parley } = await import("/rtc/parley.js");
    return Parley.join(ticket, { levels: false, ...options });
  };
  harness.resume = async (options) => {
    const { Parley } = await import("/rtc/parley.js");
    return Parley.resume({ levels: false, ...options });
  };
  harness.why = (joining) => joining.then(() => "joined", (e) => e.constructor.name + " " + e.code + ": " + e.message);
})();
