// Tests of the appearance of pages serve this file as parley.js. Its call has no server: tests emit its events.
class Call extends EventTarget {
  id = "call_1";
  state = "listening";
  muted = false;
  playback = true;
  microphoneId = "1";
  speakerId = "2";
  ended = new Promise((over) => { this.on("end", over); });
  constructor(options) { super(); this.hasMicrophone = options.microphone !== false; }
  on(type, handler) { this.addEventListener(type, (e) => handler(e.detail)); }
  emit(type, detail) { this.dispatchEvent(new CustomEvent(type, { detail })); }
  mute(on) { this.muted = on; }
  setPlayback(on) { this.playback = on; }
  press() {}
  sendText(text) { this.emit("transcript", { role: "caller", text, final: true }); }
  hangUp() { this.emit("end", { reason: "callee_hangup" }); }
}

export const Parley = {
  resumable: () => false,
  devices: async () => ({ microphones: [{ id: "1", label: "Headset" }], speakers: [{ id: "2", label: "Loudspeaker" }] }),
  watchDevices: () => () => {},
  join: async (ticket, options) => {
    await ticket();
    return (window.call = new Call(options));
  },
};
