// Put before parley.js: a microphone, a peer connection and a socket that tests
// hold the other end of.
(() => {
  sessionStorage.clear();
  const stage = (window.stage = { sockets: [], peers: [], tracks: [], asked: 0 });
  stage.wait = (ms = 0) => new Promise((done) => setTimeout(done, ms));
  stage.until = async (is) => { while (!is()) await stage.wait(); };
  stage.kept = () => JSON.parse(sessionStorage.getItem("parley.call"));
  stage.told = () => stage.sockets.flatMap((s) => s.sent.map((m) => m.type)).join(" ");

  // The visitor allows the microphone at once, or when stage.allow() is called.
  stage.prompt = Promise.resolve();
  stage.ponder = () => { stage.prompt = new Promise((allow) => { stage.allow = allow; }); };
  navigator.mediaDevices.getUserMedia = async () => {
    stage.asked++;
    await stage.prompt;
    const track = Object.assign(new EventTarget(), { enabled: true, stopped: false, stop() { this.stopped = true; } });
    stage.tracks.push(track);
    return { getAudioTracks: () => [track], getTracks: () => [track] };
  };

  window.RTCPeerConnection = class {
    connectionState = "new";
    signalingState = "stable";
    constructor() { stage.peers.push(this); }
    addTransceiver() {}
    getSenders() { return []; }
    async createOffer() { return { sdp: "offer" }; }
    async setLocalDescription(d) { this.localDescription = d; this.signalingState = "have-local-offer"; }
    async setRemoteDescription() {
      await stage.wait(); // browsers take a while, too
      if (this.signalingState === "stable") throw new DOMException("wrong state", "InvalidStateError");
      this.signalingState = "stable";
    }
    close() { this.connectionState = "closed"; }
    connect() { this.connectionState = "connected"; this.onconnectionstatechange?.(); }
  };

  // The service hears what a socket is sent, and answers by its say().
  window.WebSocket = class {
    static OPEN = 1;
    readyState = 0;
    sent = [];
    constructor(url) {
      if (!/^wss?:/.test(url)) throw new DOMException("not an address of a socket", "SyntaxError");
      stage.sockets.push(this);
      setTimeout(() => { this.readyState = 1; this.onopen?.(); });
    }
    send(text) { this.sent.push(JSON.parse(text)); stage.service(this, JSON.parse(text)); }
    say(m) { this.onmessage?.({ data: JSON.stringify(m) }); }
    close() { if (this.readyState < 2) { this.readyState = 3; setTimeout(() => this.onclose?.()); } }
  };
  stage.takes = (ws, m) => {
    if (m.type !== "join") return;
    ws.say({ type: "answer", sdp: "answer", call_id: "call", resume: "secret" + stage.sockets.length });
    stage.peers.at(-1).connect();
    ws.say({ type: "ready" });
  };
  stage.refuses = (code) => (ws, m) => { if (m.type === "join") { ws.say({ type: "error", code, message: "told by the service" }); ws.close(); } };
  stage.service = (ws, m) => setTimeout(() => stage.takes(ws, m));

  stage.join = async (ticket = { token: "t", url: "ws://stage/rtc" }, options = {}) => {
    const { Parley } = await import("/rtc/parley.js");
    return Parley.join(ticket, { levels: false, ...options });
  };
  stage.resume = async (options) => {
    const { Parley } = await import("/rtc/parley.js");
    return Parley.resume({ levels: false, ...options });
  };
  stage.why = (joining) => joining.then(() => "joined", (e) => e.constructor.name + " " + e.code + ": " + e.message);
})();
