// Uses every type of the package. TestTypeScript compiles it.
import Default, { Call, Parley, ParleyError } from "@parley-voice/web";
import type { Device, Devices, ErrorCode, Events, Level, Options, State, Ticket, Transcript, Turn } from "@parley-voice/web";

const ticket: Ticket = { access_token: "t", url: "wss://calls.example/rtc?v=1", ice_servers: [], ice_transport_policy: "relay" };
const options: Required<Options> = {
  audio: { noiseSuppression: false }, microphone: "id", speaker: "id", muted: true, playback: false, levels: false, signal: AbortSignal.timeout(1_000),
};

export async function talk(): Promise<string> {
  let call: Call | null = Parley.resumable() ? await Parley.resume(options) : null;
  call ??= await Default.join(async () => ticket, { microphone: false });
  const remove: () => void = call.on("state", ({ state }) => { const s: State = state; return s; });
  call.on("transcript", (line: Transcript) => [line.role satisfies "agent" | "caller", line.text, line.final, line.turn]);
  call.on("turn", (turn: Turn) => turn.metrics.turn_ms);
  call.on("level", (level: Level) => level.microphone + level.agent);
  call.on("devicechange", (devices: Devices) => fill(devices.microphones, devices.speakers));
  call.on("error", (error: Events["error"]) => { const code: ErrorCode = error.code; return code; });
  call.on("end", ({ reason }) => reason.length);
  const stop: () => void = Parley.watchDevices(({ microphones }) => fill(microphones, []));
  const { microphones, speakers } = await Parley.devices();
  try {
    await call.setMicrophone(microphones[0]?.id ?? "");
    await call.setSpeaker(speakers[0]?.id ?? "");
    call.mute(!call.muted);
    call.setPlayback(!call.playback);
    call.press("1,2#");
    call.sendText("hello");
  } catch (e) {
    if (e instanceof ParleyError && e.code === "microphone_denied") console.log(e.message);
  }
  remove();
  stop();
  console.log(call.id, call.reason, call.state, call.hasMicrophone, call.microphoneId, call.speakerId, call instanceof EventTarget);
  void call.hangUp();
  return call.ended;
}

function fill(...lists: Device[][]): void {
  for (const { id, label } of lists.flat()) console.log(id, label);
}

// Mistakes that the types must find.
export async function mistakes(call: Call): Promise<void> {
  // @ts-expect-error unknown event
  call.on("states", () => {});
  // @ts-expect-error unknown member
  call.on("end", ({ code }) => code);
  // @ts-expect-error unknown option
  await Parley.join("t", { mute: true });
  // @ts-expect-error no ticket
  await Parley.join();
  // @ts-expect-error calls come from join
  new Call();
  // @ts-expect-error unknown code
  new ParleyError("other");
  // @ts-expect-error read only
  call.muted = true;
}
