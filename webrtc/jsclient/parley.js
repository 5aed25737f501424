// Parley web client: joins a web call with its token. No dependencies, no build step.
// docs/web-calls.md describes the protocol, parley.d.ts the types.

const RESUME_LIMIT = 15_000; // ms; the service ends a call after this time without a connected page
const JOIN_TIMEOUT = 15_000; // ms
const ANSWER_TIMEOUT = 4_000; // ms; limit for opening the socket and for a reconnection attempt
const BYE_TIMEOUT = 3_000; // ms
const LEVEL_INTERVAL = 100; // ms
const MAX_TEXT = 1_000; // characters of one text
const STORAGE_KEY = "parley.call"; // in sessionStorage: lets a reloaded page resume its call

// After these errors the resume secret is still valid.
const SECRET_STILL_VALID = ["network", "join_timeout", "unavailable", "microphone_denied", "microphone_missing", "microphone_busy"];

const MESSAGES = {
  insecure_origin: "Microphones need a secure page. Open this page over https or on localhost.",
  unsupported: "This browser does not support web calls.",
  microphone_denied: "Microphone access is blocked. Allow it in the browser's settings for this page, then try again.",
  microphone_missing: "No microphone found. Connect one, then try again.",
  microphone_busy: "The microphone cannot be opened. Another program may be using it.",
  microphone_lost: "The microphone was disconnected.",
  speaker_unsupported: "This browser cannot select a speaker.",
  speaker_missing: "The selected speaker is not available.",
  speaker_denied: "The browser does not allow this speaker. Allow it in the browser's settings for this page.",
  keys_invalid: "Invalid keys. Use 0 to 9, *, #, A to D, and a comma for a pause.",
  keys_unsupported: "Keys cannot be sent in this call right now.",
  text_invalid: "Enter a text of 1 to 1,000 characters.",
  text_unsent: "The text cannot be sent while the call is not connected. Try again in a moment.",
  audio_blocked: "The browser blocked the audio. Click anywhere to hear it.",
  token_missing: "The token is missing. Start a new call.",
  token_invalid: "The token is not valid. Start a new call.",
  token_expired: "The token has expired. Start a new call.",
  token_used: "The token was already used. Start a new call.",
  wrong_call: "The token belongs to another call.",
  call_ended: "The call has ended.",
  resume_unknown: "The call cannot be resumed because it has ended.",
  join_timeout: "Joining took too long. Try again.",
  aborted: "Joining was canceled.",
  unavailable: "The service cannot take calls right now. Try again in a moment.",
  network: "The service cannot be reached. Check your connection, then try again.",
  connection_lost: "The connection was lost for too long.",
};

/** An error while joining or during a call. */
export class ParleyError extends Error {
  /**
   * @param {string} code
   * @param {string} [detail] text that is used if MESSAGES has none for the code
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
   * Joins a call. Resolves when media flows. ticket may be a function that returns the ticket. It is called when the
   * microphone is open, because tokens expire after a minute.
   */
  join(ticket, options = {}) {
    return new Call(options)._begin(ticket);
  },

  /** Resumes the call of this tab after a reload; null if there is none. */
  async resume(options = {}) {
    const saved = loadCall();
    if (!saved) return null;
    try {
      return await new Call(options)._begin(saved);
    } catch (e) {
      if (e.code === "resume_unknown" || e.code === "call_ended") return null;
      throw e;
    }
  },

  /** Reports whether there may be a call to resume. */
  resumable: () => loadCall() !== null,

  /** Lists microphones and speakers. Lists are empty, or labels are, until the user allows a microphone. */
  async devices() {
    const all = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
    const of = (kind) => all.filter((d) => d.kind === kind && d.deviceId).map((d) => ({ id: d.deviceId, label: d.label }));
    return { microphones: of("audioinput"), speakers: canSelectSpeaker() ? of("audiooutput") : [] };
  },

  /** Calls handler with the lists each time a device is connected or removed. Returns a function that stops this. */
  watchDevices(handler) {
    const media = navigator.mediaDevices, listener = async () => handler(await Parley.devices());
    media?.addEventListener("devicechange", listener);
    return () => media?.removeEventListener("devicechange", listener);
  },
};

export default Parley;

const canSelectSpeaker = () => "setSinkId" in HTMLMediaElement.prototype;

/** The WebSocket URL of the service that this file was loaded from. */
function defaultSocketURL() {
  const u = new URL("/rtc?v=1", import.meta.url);
  u.protocol = u.protocol.replace("http", "ws");
  return u.href;
}

function loadCall() {
  try {
    const saved = JSON.parse(sessionStorage.getItem(STORAGE_KEY));
    return saved?.resume && Date.now() - saved.at < 2 * 60 * 60_000 ? saved : null;
  } catch {
    return null; // storage is disabled or holds other data
  }
}

function saveCall(saved) {
  try {
    if (saved) sessionStorage.setItem(STORAGE_KEY, JSON.stringify({ ...saved, at: Date.now() }));
    else sessionStorage.removeItem(STORAGE_KEY);
  } catch {
    // Without storage a reload ends the call.
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

const withTimeout = (ms, promise, error) => {
  let timer;
  const late = new Promise((_, no) => { timer = setTimeout(() => no(error), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

/** Converts errors of the browser to ParleyError. */
const wrapErrors = (promise) => promise.catch((e) => { throw e instanceof ParleyError ? e : new ParleyError("unsupported", undefined, e); });

/** A call of this page, created by Parley.join. */
export class Call extends EventTarget {
  #target; #credential; #options; #socket = null; #peer = null; #resume = null; #outage = null;
  #microphone = null; #audio = null; #meter = null; #muted; #playback; #choice = 0; #unwatch = null; #leaving = false; #joined = false; #earlyEvents = []; #attempts = 0;
  #agentState = "connecting"; #connection = "connecting"; #ready = Promise.withResolvers(); #ended = Promise.withResolvers();

  constructor(options) {
    super();
    this.#options = options;
    this.#muted = options.muted === true;
    this.#playback = options.playback !== false;
    this.#ready.promise.catch(() => {}); // _begin reports the error
    this.id = "";
    this.reason = "";
  }

  /** The state of the conversation, or `connecting`, `reconnecting`, `ended`. */
  get state() { return this.#connection === "connected" ? this.#agentState : this.#connection; }
  get muted() { return this.#muted; }
  /** Whether the call has a microphone. */
  get hasMicrophone() { return this.#microphone !== null; }
  /** The id of the microphone in use; empty without one. */
  get microphoneId() { return this.#microphone?.getAudioTracks()[0].getSettings().deviceId ?? ""; }
  /** The id of the speaker in use; empty for the default one. */
  get speakerId() { return this.#audio?.sinkId ?? ""; }
  /** Whether the agent's voice is played. */
  get playback() { return this.#playback; }
  /** Resolves with the reason when the call has ended. */
  get ended() { return this.#ended.promise; }

  /** Adds a listener that receives the event detail. Returns a function that removes it. */
  on(type, handler) {
    const listener = (e) => handler(e.detail);
    this.addEventListener(type, listener);
    return () => this.removeEventListener(type, listener);
  }

  /** Mutes or unmutes the microphone. */
  mute(on = true) {
    this.#muted = Boolean(on);
    for (const t of this.#microphone?.getAudioTracks() ?? []) t.enabled = !this.#muted;
    this.#save();
  }

  /** Plays the agent's voice, or stops playing it. */
  setPlayback(on = true) {
    this.#playback = Boolean(on);
    if (this.#audio) this.#audio.muted = !this.#playback;
    if (this.#playback && this.#audio?.srcObject) this.#startAudio();
    this.#save();
  }

  /** Queues DTMF digits: 0 to 9, *, #, A to D; a comma pauses for 2 s. */
  press(keys) {
    if (!/^[0-9*#A-Da-d,]+$/.test(keys)) throw new ParleyError("keys_invalid");
    const pad = this.#peer?.getSenders().find((s) => s.dtmf)?.dtmf;
    if (this.state === "reconnecting" || !pad?.canInsertDTMF) throw new ParleyError("keys_unsupported");
    pad.insertDTMF(pad.toneBuffer + keys);
  }

  /** Sends words in writing. The agent answers them like spoken words, without a wait for more. */
  sendText(text) {
    const words = String(text).replace(/\s+/g, " ").trim();
    if (!words || [...words].length > MAX_TEXT) throw new ParleyError("text_invalid");
    if (this.#connection !== "connected" || this.#socket?.readyState !== WebSocket.OPEN) throw new ParleyError("text_unsent");
    this.#send({ type: "text", text: words });
  }

  /** Ends the call and resolves with the reason. */
  hangUp() {
    if (this.#connection === "ended") return this.ended;
    this.#leaving = true;
    this.#send({ type: "bye" });
    setTimeout(() => this.#finish("callee_hangup"), BYE_TIMEOUT);
    return this.ended;
  }

  /** Switches to another microphone by its id. After several calls the last choice is used. */
  async setMicrophone(id) {
    const choice = ++this.#choice;
    const fresh = await openMicrophone({ ...this.#constraints(), deviceId: { exact: id } });
    if (choice !== this.#choice) return stop(fresh);
    const before = this.#microphone;
    this.#useMicrophone(fresh);
    if (this.#connection === "ended") return;
    await Promise.all((this.#peer?.getSenders() ?? []).map((s) => s.replaceTrack(fresh.getAudioTracks()[0])));
    stop(before);
  }

  /** Switches to another speaker by its id. */
  async setSpeaker(id) {
    if (!canSelectSpeaker()) throw new ParleyError("speaker_unsupported");
    try {
      await this.#audio.setSinkId(id);
    } catch (e) {
      throw new ParleyError(e.name === "NotAllowedError" ? "speaker_denied" : "speaker_missing", undefined, e);
    }
  }

  /** @internal Joins with a token, or resumes with a secret. */
  async _begin(ticket) {
    const { signal } = this.#options, quit = Promise.withResolvers();
    const cancel = () => quit.reject(new ParleyError("aborted", undefined, signal.reason));
    signal?.addEventListener("abort", cancel);
    try {
      if (signal?.aborted) throw new ParleyError("aborted", undefined, signal.reason);
      await Promise.race([quit.promise, this.#join(ticket)]);
    } catch (e) {
      this.#send({ type: "bye" });
      this.#close(this.#credential?.resume && SECRET_STILL_VALID.includes(e.code));
      throw e;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
    this.#joined = true;
    setTimeout(() => { // after the caller has added listeners
      for (const [type, detail] of this.#earlyEvents) this.#dispatch(type, detail); // listeners may add events during the loop
      this.#earlyEvents = null;
    });
    return this;
  }

  /** Performs the steps of joining. If the call was canceled, no further step begins. */
  async #join(ticket) {
    const ended = () => this.#connection === "ended";
    if (typeof ticket !== "function") this.#readTicket(ticket);
    // Open the microphone first: the user may take longer to allow it than the service waits for a join.
    await wrapErrors(this.#openMedia());
    if (!this.#credential && !ended()) this.#readTicket(await ticket());
    if (!ended()) await wrapErrors(this.#open());
    if (!ended()) await wrapErrors(this.#connect(this.#credential));
    await withTimeout(JOIN_TIMEOUT, this.#ready.promise, new ParleyError("network"));
  }

  #readTicket(ticket) {
    const t = typeof ticket === "string" ? { token: ticket } : (ticket ?? {});
    const token = t.token ?? t.access_token;
    if (!token && !t.resume) throw new ParleyError("token_missing");
    this.#target = { url: t.url ?? defaultSocketURL(), ice: t.ice_servers, policy: t.ice_transport_policy };
    this.#credential = token ? { token } : { resume: t.resume };
    if (!t.resume) return;
    this.#muted = Boolean(t.muted);
    this.#playback = !t.quiet;
    if (t.silent) this.#options = { ...this.#options, microphone: false };
  }

  /** Saves the data that a reloaded page needs to resume. */
  #save() {
    if (!this.#resume || this.#connection === "ended") return;
    saveCall({ url: this.#target.url, ice_servers: this.#target.ice, ice_transport_policy: this.#target.policy, resume: this.#resume, muted: this.#muted, silent: !this.#microphone, quiet: !this.#playback });
  }

  async #openMedia() {
    this.#audio = new Audio();
    this.#audio.autoplay = true;
    this.#audio.muted = !this.#playback;
    this.#unwatch = Parley.watchDevices((devices) => this.#connection !== "ended" && this.#emit("devicechange", devices));
    const { microphone, speaker } = this.#options;
    if (microphone !== false) this.#useMicrophone(await this.#openPreferred(microphone));
    // Browsers list speakers after the user has allowed a microphone.
    if (speaker) await this.setSpeaker(speaker).catch((e) => this.#reportError(e));
  }

  /** Opens a remembered microphone, or another one if it is not connected. */
  async #openPreferred(id) {
    if (typeof id === "string") {
      try {
        return await openMicrophone({ ...this.#constraints(), deviceId: { exact: id } });
      } catch (e) {
        if (e.code !== "microphone_missing") throw e;
      }
    }
    return openMicrophone(this.#constraints());
  }

  #constraints() {
    return { echoCancellation: true, noiseSuppression: true, autoGainControl: true, ...(this.#options.audio ?? {}) };
  }

  #useMicrophone(stream) {
    if (this.#connection === "ended") return stop(stream);
    this.#microphone = stream;
    this.mute(this.#muted);
    stream.getAudioTracks()[0].addEventListener("ended", () => {
      if (this.#microphone === stream && this.#connection !== "ended") this.#reportError(new ParleyError("microphone_lost"));
    });
    this.#measureLevels();
  }

  // ---- the socket

  async #open() {
    let ws;
    try {
      ws = new WebSocket(this.#target.url);
    } catch (e) {
      throw new ParleyError("network", undefined, e); // the URL is invalid
    }
    const opened = Promise.withResolvers();
    ws.onopen = () => opened.resolve();
    ws.onclose = () => {
      opened.reject(new ParleyError("network"));
      if (this.#socket === ws) this.#onLost();
    };
    ws.onmessage = (e) => { if (this.#socket === ws) this.#receive(JSON.parse(e.data)); };
    this.#socket = ws;
    return withTimeout(ANSWER_TIMEOUT, opened.promise, new ParleyError("network"));
  }

  #send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #receive(m) {
    switch (m.type) {
      case "answer":
        if (!this.#awaitingAnswer) break; // the answer belongs to an offer that was replaced
        this.#awaitingAnswer = false;
        this.id = m.call_id;
        this.#resume = m.resume;
        if (m.ice_servers) this.#target.ice = m.ice_servers;
        this.#save();
        this.#peer?.setRemoteDescription({ type: "answer", sdp: m.sdp }).catch((e) => this.#reportError(new ParleyError("unsupported", undefined, e)));
        if (this.#leaving) this.#send({ type: "bye" });
        break;
      case "candidate":
        if (m.candidate) this.#peer?.addIceCandidate(m.candidate).catch(() => {}); // other candidates may work
        break;
      case "ready":
        this.#onConnected();
        this.#ready.resolve();
        break;
      case "event":
        this.#onEvent(m);
        break;
      case "bye":
        this.#finish(m.reason);
        break;
      case "error":
        this.#onRefused(new ParleyError(m.code, m.message));
        break;
    }
  }

  #onEvent(m) {
    if (m.event === "state") {
      this.#agentState = m.state;
      this.#emit("state", { state: this.state });
    } else if (m.event === "transcript") {
      this.#emit("transcript", { role: m.role, text: m.text, final: m.final, turn: m.turn });
    } else if (m.event === "turn") {
      this.#emit("turn", m.turn);
    }
  }

  /** Handles an error message. The service then closes the socket; most errors allow a retry. */
  #onRefused(error) {
    if (!this.#joined) return this.#ready.reject(error);
    if (!["call_ended", "resume_unknown"].includes(error.code)) return; // the closed socket triggers a resume
    this.#reportError(error);
    this.#finish(error.code);
  }

  // ---- the media

  async #connect(by) {
    const peer = new RTCPeerConnection({ iceServers: this.#target.ice ?? [], iceTransportPolicy: this.#target.policy ?? "all", bundlePolicy: "max-bundle" });
    const before = this.#peer;
    this.#peer = peer;
    this.#offerSent = false;
    this.#pendingCandidates = [];
    const current = () => this.#peer === peer;
    peer.onicecandidate = (e) => { if (current()) this.#sendCandidate(e.candidate); };
    peer.ontrack = (e) => { if (current()) this.#play(new MediaStream([e.track])); };
    peer.onconnectionstatechange = () => {
      if (!current()) return;
      if (peer.connectionState === "connected") this.#onConnected();
      else if (peer.connectionState === "disconnected" || peer.connectionState === "failed") this.#onLost();
    };
    const track = this.#microphone?.getAudioTracks()[0];
    peer.addTransceiver(track ?? "audio", { direction: "sendrecv", streams: track ? [this.#microphone] : [] });
    before?.close();
    return this.#sendOffer({ type: "join", ...by });
  }

  #offerSent = false; // the offer was sent; candidates may follow
  #awaitingAnswer = false; // the offer has no answer yet
  #pendingCandidates = [];

  #sendCandidate(candidate) {
    if (!this.#offerSent) this.#pendingCandidates.push(candidate);
    else this.#send({ type: "candidate", candidate: candidate?.toJSON?.() ?? null });
  }

  async #sendOffer(message, how) {
    const peer = this.#peer;
    await peer.setLocalDescription(await peer.createOffer(how));
    this.#awaitingAnswer = true;
    this.#send({ ...message, sdp: peer.localDescription.sdp });
    this.#offerSent = true;
    for (const c of this.#pendingCandidates.splice(0)) this.#sendCandidate(c);
  }

  #play(stream) {
    this.#audio.srcObject = stream;
    this.#startAudio();
    this.#measureLevels();
  }

  #startAudio() {
    this.#audio.play().catch((e) => {
      if (e.name !== "NotAllowedError") return;
      this.#reportError(new ParleyError("audio_blocked"));
      const retry = () => { this.#audio?.play().catch(() => {}); this.#meter?.context.resume(); };
      for (const type of ["pointerdown", "keydown"]) addEventListener(type, retry, { once: true });
    });
  }

  /** Emits audio levels of both sides unless options.levels is false. */
  #measureLevels() {
    if (this.#options.levels === false) return;
    const context = this.#meter?.context ?? new AudioContext();
    clearInterval(this.#meter?.timer);
    for (const s of this.#meter?.sources ?? []) s.disconnect();
    const sources = [];
    const levelOf = (stream) => {
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
    const microphone = levelOf(this.#microphone), agent = levelOf(this.#audio?.srcObject);
    const timer = setInterval(() => this.#joined && this.#emit("level", { microphone: microphone(), agent: agent() }), LEVEL_INTERVAL);
    this.#meter = { context, sources, timer };
  }

  // ---- reconnection

  #onConnected() {
    if (this.#connection === "ended" || this.#peer?.connectionState !== "connected") return;
    if (this.#socket?.readyState !== WebSocket.OPEN) return;
    clearTimeout(this.#outage?.timer);
    this.#outage = null;
    this.#attempts = 0;
    if (this.#connection === "connected") return;
    this.#connection = "connected";
    if (this.#agentState === "connecting") this.#agentState = "listening";
    this.#emit("state", { state: this.state });
  }

  #onLost() {
    if (this.#connection === "ended") return;
    if (!this.#joined) {
      if (this.#socket?.readyState > WebSocket.OPEN) this.#ready.reject(new ParleyError("network"));
      return;
    }
    if (this.#outage) return;
    this.#outage = { since: Date.now(), timer: null };
    this.#connection = "reconnecting";
    this.#emit("state", { state: this.state });
    this.#reconnect();
  }

  /** Retries until the call is connected or RESUME_LIMIT has passed. */
  async #reconnect() {
    const away = this.#outage;
    if (!away || this.#connection === "ended") return;
    if (Date.now() - away.since > RESUME_LIMIT) {
      this.#reportError(new ParleyError("connection_lost"));
      this.#finish("media_timeout");
      return;
    }
    const n = this.#attempts++;
    const next = (ms) => { if (this.#outage === away) away.timer = setTimeout(() => this.#reconnect(), ms); };
    try {
      // Try one ICE restart, which keeps the connection and its keys. If it fails,
      // or the socket is closed too, open a new socket and connection.
      if (n === 0 && this.#socket?.readyState === WebSocket.OPEN) {
        this.#offerSent = false;
        await this.#sendOffer({ type: "restart" }, { iceRestart: true });
        next(ANSWER_TIMEOUT);
        return;
      }
      const before = this.#socket;
      const opened = this.#open();
      before?.close();
      await opened;
      if (this.#outage !== away) return;
      await this.#connect({ resume: this.#resume });
      next(ANSWER_TIMEOUT);
    } catch {
      next(Math.min(2_000, 250 * 2 ** n));
    }
  }

  // ---- the end

  #emit(type, detail) {
    if (this.#earlyEvents) this.#earlyEvents.push([type, detail]);
    else this.#dispatch(type, detail);
  }

  #dispatch(type, detail) { this.dispatchEvent(new CustomEvent(type, { detail })); }

  #reportError(error) { this.#emit("error", error); }

  #finish(reason) {
    if (this.#connection === "ended") return;
    this.#connection = "ended";
    this.reason = reason;
    this.#ready.reject(new ParleyError("call_ended"));
    this.#close();
    this.#emit("state", { state: "ended" });
    this.#emit("end", { reason });
    this.#ended.resolve(reason);
  }

  #close(keep) {
    this.#connection = "ended";
    if (!keep) saveCall(null);
    clearTimeout(this.#outage?.timer);
    clearInterval(this.#meter?.timer);
    this.#unwatch?.();
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
