// Parley in a browser: joins a web call by its token. No dependency, no build.
// The protocol is docs/web-calls.md; the types are parley.d.ts.

const RESUME_FOR = 15_000; // ms that the service keeps a call without its page
const JOIN_WITHIN = 15_000; // ms
const ANSWER_WITHIN = 4_000; // ms; a socket that says nothing for so long is given up
const BYE_WITHIN = 3_000; // ms
const LEVEL_EVERY = 100; // ms
const KEPT = "parley.call"; // in sessionStorage: what a reloaded page goes on with

const UNUSED = ["network", "join_timeout", "unavailable", "microphone_denied", "microphone_missing", "microphone_busy"]; // a secret that met these is still good

const MESSAGES = {
  insecure_origin: "Microphones work on secure pages only. Open this page over https, or on localhost.",
  unsupported: "This browser cannot make web calls.",
  microphone_denied: "The microphone is blocked. Allow it in the browser's settings for this page, and try again.",
  microphone_missing: "There is no microphone. Connect one, and try again.",
  microphone_busy: "The microphone cannot be opened. Another program may be using it.",
  microphone_lost: "The microphone was disconnected.",
  speaker_unsupported: "This browser cannot choose a speaker.",
  speaker_missing: "The speaker cannot be used.",
  keys_invalid: "Keys are 0 to 9, *, #, A to D, and a comma to wait.",
  keys_unsupported: "This call takes no keys now.",
  audio_blocked: "The browser holds the sound back. Click anywhere to hear it.",
  token_missing: "There is no token to join with.",
  token_invalid: "This token is not valid. Ask for a new call.",
  token_expired: "This token has expired. Ask for a new call.",
  token_used: "This token was used already. Ask for a new call.",
  wrong_call: "This token belongs to another call.",
  call_ended: "The call is over.",
  resume_unknown: "The call cannot be taken up again; it is over.",
  join_timeout: "The service waited for too long. Try again.",
  aborted: "Joining was given up.",
  unavailable: "No calls are taken now. Try again in a moment.",
  network: "The service cannot be reached. Check the connection, and try again.",
  connection_lost: "The connection was lost for too long.",
};

/** Why a call could not be joined, or what went wrong in it. */
export class ParleyError extends Error {
  /**
   * @param {string} code
   * @param {string} [detail] said where the code has no text of its own
   * @param {unknown} [cause]
   */
  constructor(code, detail, cause) {
    super(MESSAGES[code] ?? detail ?? code, { cause });
    this.name = "ParleyError";
    this.code = code;
  }
}

export const Parley = {
  /**
   * Joins a call by its token. Resolves when media flows. A ticket that is a function
   * is asked for once the microphone is there: tokens are good for a minute only.
   */
  join(ticket, options = {}) {
    return new Call(options)._begin(ticket);
  },

  /** Goes on with the call that this tab had before it was reloaded; null where there is none. */
  async resume(options = {}) {
    const kept = recall();
    if (!kept) return null;
    try {
      return await new Call(options)._begin(kept);
    } catch (e) {
      if (e.code === "resume_unknown" || e.code === "call_ended") return null;
      throw e;
    }
  },

  /** Whether there is a call to resume. */
  resumable: () => recall() !== null,

  /** Microphones and speakers. They have names once a microphone was allowed. */
  async devices() {
    const all = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
    const of = (kind) => all.filter((d) => d.kind === kind && d.deviceId).map((d) => ({ id: d.deviceId, label: d.label }));
    return { microphones: of("audioinput"), speakers: "setSinkId" in HTMLMediaElement.prototype ? of("audiooutput") : [] };
  },
};

export default Parley;

/** The socket of the service that this file came from. */
function socketBeside() {
  const u = new URL("/rtc?v=1", import.meta.url);
  u.protocol = u.protocol.replace("http", "ws");
  return u.href;
}

function recall() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT));
    return kept?.resume && Date.now() - kept.at < 2 * 60 * 60_000 ? kept : null;
  } catch {
    return null; // no storage here, or not ours
  }
}

function remember(kept) {
  try {
    if (kept) sessionStorage.setItem(KEPT, JSON.stringify({ ...kept, at: Date.now() }));
    else sessionStorage.removeItem(KEPT);
  } catch {
    // Where nothing can be kept a reload ends the call.
  }
}

async function openMicrophone(constraints) {
  if (!globalThis.isSecureContext) throw new ParleyError("insecure_origin");
  if (!navigator.mediaDevices?.getUserMedia || !globalThis.RTCPeerConnection) throw new ParleyError("unsupported");
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: constraints, video: false });
  } catch (e) {
    const code = { NotAllowedError: "microphone_denied", SecurityError: "microphone_denied", NotFoundError: "microphone_missing", OverconstrainedError: "microphone_missing" };
    throw new ParleyError(code[e.name] ?? "microphone_busy", undefined, e);
  }
}

const within = (ms, promise, error) => {
  let timer;
  const late = new Promise((_, no) => { timer = setTimeout(() => no(error), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

/** What a browser throws, told as all else. */
const told = (promise) => promise.catch((e) => { throw e instanceof ParleyError ? e : new ParleyError("unsupported", undefined, e); });

/** A call that this page takes part in. Parley.join makes it. */
export class Call extends EventTarget {
  #to; #by; #options; #socket = null; #peer = null; #resume = null; #away = null;
  #microphone = null; #audio = null; #meter = null; #muted = false; #leaving = false; #joined = false; #early = []; #tries = 0;
  #floor = "connecting"; #connection = "connecting"; #ready = Promise.withResolvers(); #ended = Promise.withResolvers();

  constructor(options) {
    super();
    this.#options = options;
    this.#ready.promise.catch(() => {}); // who joined is told
    this.id = "";
    this.reason = "";
  }

  /** Who has the floor, or `connecting`, `reconnecting`, `ended`. */
  get state() { return this.#connection === "connected" ? this.#floor : this.#connection; }
  get muted() { return this.#muted; }
  /** Resolves with the reason when the call is over. */
  get ended() { return this.#ended.promise; }

  /** Hears an event by its detail. Returns what stops it. */
  on(type, heard) {
    const listener = (e) => heard(e.detail);
    this.addEventListener(type, listener);
    return () => this.removeEventListener(type, listener);
  }

  /** Mutes the microphone, or lets it be heard. */
  mute(on = true) {
    this.#muted = Boolean(on);
    for (const t of this.#microphone?.getAudioTracks() ?? []) t.enabled = !this.#muted;
    this.#keep();
  }

  /** Presses the keys of a telephone, after those before them: 0 to 9, *, #, A to D; a comma waits for 2 s. */
  press(keys) {
    if (!/^[0-9*#A-Da-d,]+$/.test(keys)) throw new ParleyError("keys_invalid");
    const pad = this.#peer?.getSenders().find((s) => s.dtmf)?.dtmf;
    if (this.state === "reconnecting" || !pad?.canInsertDTMF) throw new ParleyError("keys_unsupported");
    pad.insertDTMF(pad.toneBuffer + keys);
  }

  /** Ends the call, and resolves with its reason. */
  hangUp() {
    if (this.#connection === "ended") return this.ended;
    this.#leaving = true;
    this.#send({ type: "bye" });
    setTimeout(() => this.#finish("callee_hangup"), BYE_WITHIN);
    return this.ended;
  }

  /** Speaks into another microphone, by its id. */
  async setMicrophone(id) {
    const fresh = await openMicrophone({ ...this.#wish(), deviceId: { exact: id } });
    const before = this.#microphone;
    this.#take(fresh);
    if (this.#connection === "ended") return;
    await Promise.all((this.#peer?.getSenders() ?? []).map((s) => s.replaceTrack(fresh.getAudioTracks()[0])));
    stop(before);
  }

  /** Is heard from another speaker, by its id. */
  async setSpeaker(id) {
    if (!("setSinkId" in HTMLMediaElement.prototype)) throw new ParleyError("speaker_unsupported");
    try {
      await this.#audio.setSinkId(id);
    } catch (e) {
      throw new ParleyError("speaker_missing", undefined, e);
    }
  }

  /** @internal Joins, by a token or by the secret of a call that is on. */
  async _begin(ticket) {
    const { signal } = this.#options, quit = Promise.withResolvers();
    const giveUp = () => quit.reject(new ParleyError("aborted", undefined, signal.reason));
    signal?.addEventListener("abort", giveUp);
    try {
      if (signal?.aborted) throw new ParleyError("aborted", undefined, signal.reason);
      await Promise.race([quit.promise, this.#join(ticket)]);
    } catch (e) {
      this.#send({ type: "bye" });
      this.#close(this.#by?.resume && UNUSED.includes(e.code));
      throw e;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
    this.#joined = true;
    setTimeout(() => { // once there are listeners
      for (const [type, detail] of this.#early) this.#dispatch(type, detail); // and what is told meanwhile
      this.#early = null;
    });
    return this;
  }

  /** Does all that is waited for. The call may be given up meanwhile: then nothing more is begun. */
  async #join(ticket) {
    const over = () => this.#connection === "ended";
    if (typeof ticket !== "function") this.#read(ticket);
    // A visitor may think about the microphone for longer than a socket may be silent.
    await told(this.#listen());
    if (!this.#by && !over()) this.#read(await ticket());
    if (!over()) await told(this.#open());
    if (!over()) await told(this.#connect(this.#by));
    await within(JOIN_WITHIN, this.#ready.promise, new ParleyError("network"));
  }

  #read(ticket) {
    const t = typeof ticket === "string" ? { token: ticket } : (ticket ?? {});
    const token = t.token ?? t.access_token;
    if (!token && !t.resume) throw new ParleyError("token_missing");
    this.#to = { url: t.url ?? socketBeside(), ice: t.ice_servers, policy: t.ice_transport_policy };
    this.#by = token ? { token } : { resume: t.resume };
    if (t.resume && t.muted) this.#muted = true;
  }

  /** Keeps what a reloaded page goes on with. */
  #keep() {
    if (!this.#resume || this.#connection === "ended") return;
    remember({ url: this.#to.url, ice_servers: this.#to.ice, ice_transport_policy: this.#to.policy, resume: this.#resume, muted: this.#muted });
  }

  async #listen() {
    this.#audio = new Audio();
    this.#audio.autoplay = true;
    this.#take(await openMicrophone(this.#wish()));
  }

  #wish() {
    return { echoCancellation: true, noiseSuppression: true, autoGainControl: true, ...(this.#options.audio ?? {}) };
  }

  #take(stream) {
    if (this.#connection === "ended") return stop(stream);
    this.#microphone = stream;
    this.mute(this.#muted);
    stream.getAudioTracks()[0].addEventListener("ended", () => {
      if (this.#microphone === stream && this.#connection !== "ended") this.#fail(new ParleyError("microphone_lost"));
    });
    this.#measure();
  }

  // ---- the socket

  async #open() {
    let ws;
    try {
      ws = new WebSocket(this.#to.url);
    } catch (e) {
      throw new ParleyError("network", undefined, e); // it is no address
    }
    const opened = Promise.withResolvers();
    ws.onopen = () => opened.resolve();
    ws.onclose = () => {
      opened.reject(new ParleyError("network"));
      if (this.#socket === ws) this.#lost();
    };
    ws.onmessage = (e) => { if (this.#socket === ws) this.#hear(JSON.parse(e.data)); };
    this.#socket = ws;
    return within(ANSWER_WITHIN, opened.promise, new ParleyError("network"));
  }

  #send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #hear(m) {
    switch (m.type) {
      case "answer":
        if (!this.#offered) break; // it is of an offer that another took the place of
        this.#offered = false;
        this.id = m.call_id;
        this.#resume = m.resume;
        if (m.ice_servers) this.#to.ice = m.ice_servers;
        this.#keep();
        this.#peer?.setRemoteDescription({ type: "answer", sdp: m.sdp }).catch((e) => this.#fail(new ParleyError("unsupported", undefined, e)));
        if (this.#leaving) this.#send({ type: "bye" });
        break;
      case "candidate":
        if (m.candidate) this.#peer?.addIceCandidate(m.candidate).catch(() => {}); // others may do
        break;
      case "ready":
        this.#back();
        this.#ready.resolve();
        break;
      case "event":
        this.#event(m);
        break;
      case "bye":
        this.#finish(m.reason);
        break;
      case "error":
        this.#refused(new ParleyError(m.code, m.message));
        break;
    }
  }

  #event(m) {
    if (m.event === "state") {
      this.#floor = m.state;
      this.#tell("state", { state: this.state });
    } else if (m.event === "transcript") {
      this.#tell("transcript", { role: m.role, text: m.text, final: m.final, turn: m.turn });
    } else if (m.event === "turn") {
      this.#tell("turn", m.turn);
    }
  }

  /** The service closes the socket after an error; most can be tried again. */
  #refused(error) {
    if (!this.#joined) return this.#ready.reject(error);
    if (!["call_ended", "resume_unknown"].includes(error.code)) return; // it is resumed
    this.#fail(error);
    this.#finish(error.code);
  }

  // ---- the media

  async #connect(by) {
    const peer = new RTCPeerConnection({ iceServers: this.#to.ice ?? [], iceTransportPolicy: this.#to.policy ?? "all", bundlePolicy: "max-bundle" });
    const before = this.#peer;
    this.#peer = peer;
    this.#sent = false;
    this.#held = [];
    const current = () => this.#peer === peer;
    peer.onicecandidate = (e) => { if (current()) this.#offerCandidate(e.candidate); };
    peer.ontrack = (e) => { if (current()) this.#play(new MediaStream([e.track])); };
    peer.onconnectionstatechange = () => {
      if (!current()) return;
      if (peer.connectionState === "connected") this.#back();
      else if (peer.connectionState === "disconnected" || peer.connectionState === "failed") this.#lost();
    };
    for (const t of this.#microphone.getAudioTracks()) peer.addTransceiver(t, { direction: "sendrecv", streams: [this.#microphone] });
    before?.close();
    return this.#describe({ type: "join", ...by });
  }

  #sent = false; // our description: candidates may follow it
  #offered = false; // it is not answered yet
  #held = [];

  #offerCandidate(candidate) {
    if (!this.#sent) this.#held.push(candidate);
    else this.#send({ type: "candidate", candidate: candidate?.toJSON?.() ?? null });
  }

  async #describe(message, how) {
    const peer = this.#peer;
    await peer.setLocalDescription(await peer.createOffer(how));
    this.#offered = true;
    this.#send({ ...message, sdp: peer.localDescription.sdp });
    this.#sent = true;
    for (const c of this.#held.splice(0)) this.#offerCandidate(c);
  }

  #play(stream) {
    this.#audio.srcObject = stream;
    this.#audio.play().catch((e) => {
      if (e.name !== "NotAllowedError") return;
      this.#fail(new ParleyError("audio_blocked"));
      const again = () => { this.#audio?.play().catch(() => {}); this.#meter?.context.resume(); };
      for (const type of ["pointerdown", "keydown"]) addEventListener(type, again, { once: true });
    });
    this.#measure();
  }

  /** Measures how loud both sides are, while somebody asks. */
  #measure() {
    if (this.#options.levels === false) return;
    const context = this.#meter?.context ?? new AudioContext();
    clearInterval(this.#meter?.timer);
    for (const s of this.#meter?.sources ?? []) s.disconnect();
    const sources = [];
    const look = (stream) => {
      if (!stream) return () => 0;
      const source = context.createMediaStreamSource(stream), analyser = context.createAnalyser();
      analyser.fftSize = 2048;
      source.connect(analyser);
      sources.push(source);
      const wave = new Float32Array(analyser.fftSize);
      return () => {
        analyser.getFloatTimeDomainData(wave);
        return Math.min(1, Math.sqrt(wave.reduce((sum, v) => sum + v * v, 0) / wave.length));
      };
    };
    const ours = look(this.#microphone), theirs = look(this.#audio?.srcObject);
    const timer = setInterval(() => this.#joined && this.#tell("level", { microphone: ours(), agent: theirs() }), LEVEL_EVERY);
    this.#meter = { context, sources, timer };
  }

  // ---- what is lost, and found again

  #back() {
    if (this.#connection === "ended" || this.#peer?.connectionState !== "connected") return;
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    clearTimeout(this.#away?.timer);
    this.#away = null;
    this.#tries = 0;
    if (this.#connection === "connected") return;
    this.#connection = "connected";
    if (this.#floor === "connecting") this.#floor = "listening";
    this.#tell("state", { state: this.state });
  }

  #lost() {
    if (this.#connection === "ended") return;
    if (!this.#joined) {
      if (this.#socket?.readyState > WebSocket.OPEN) this.#ready.reject(new ParleyError("network"));
      return;
    }
    if (this.#away) return;
    this.#away = { since: Date.now(), timer: null };
    this.#connection = "reconnecting";
    this.#tell("state", { state: this.state });
    this.#again();
  }

  /** Tries to get the call back, until it is back or the service has given it up. */
  async #again() {
    const away = this.#away;
    if (!away || this.#connection === "ended") return;
    if (Date.now() - away.since > RESUME_FOR) {
      this.#fail(new ParleyError("connection_lost"));
      this.#finish("media_timeout");
      return;
    }
    const n = this.#tries++;
    const next = (ms) => { if (this.#away === away) away.timer = setTimeout(() => this.#again(), ms); };
    try {
      // A restart keeps the connection and its keys. It is tried once; where that
      // does not help, or the socket is gone too, all is made anew.
      if (n === 0 && this.#socket?.readyState === WebSocket.OPEN) {
        this.#sent = false;
        await this.#describe({ type: "restart" }, { iceRestart: true });
        next(ANSWER_WITHIN);
        return;
      }
      const before = this.#socket;
      const opened = this.#open();
      before?.close();
      await opened;
      if (this.#away !== away) return;
      await this.#connect({ resume: this.#resume });
      next(ANSWER_WITHIN);
    } catch {
      next(Math.min(2_000, 250 * 2 ** n));
    }
  }

  // ---- the end

  #tell(type, detail) {
    if (this.#early) this.#early.push([type, detail]);
    else this.#dispatch(type, detail);
  }

  #dispatch(type, detail) { this.dispatchEvent(new CustomEvent(type, { detail })); }

  #fail(error) { this.#tell("error", error); }

  #finish(reason) {
    if (this.#connection === "ended") return;
    this.#connection = "ended";
    this.reason = reason;
    this.#ready.reject(new ParleyError("call_ended"));
    this.#close();
    this.#tell("state", { state: "ended" });
    this.#tell("end", { reason });
    this.#ended.resolve(reason);
  }

  #close(keep) {
    this.#connection = "ended";
    if (!keep) remember(null);
    clearTimeout(this.#away?.timer);
    clearInterval(this.#meter?.timer);
    this.#meter?.context.close().catch(() => {});
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    this.#peer?.close();
    stop(this.#microphone);
    if (this.#audio) this.#audio.srcObject = null;
  }
}

function stop(stream) {
  for (const t of stream?.getTracks() ?? []) t.stop();
}
