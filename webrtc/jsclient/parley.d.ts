/** Codes of errors while joining or during a call. */
export type ErrorCode =
  | "insecure_origin" | "unsupported"
  | "microphone_denied" | "microphone_missing" | "microphone_busy" | "microphone_lost"
  | "speaker_unsupported" | "speaker_missing" | "speaker_denied" | "audio_blocked" | "keys_invalid" | "keys_unsupported"
  | "text_invalid" | "text_unsent"
  | "token_missing" | "token_invalid" | "token_expired" | "token_used" | "wrong_call"
  | "call_ended" | "resume_unknown" | "sdp_invalid" | "message_invalid" | "too_many_messages" | "join_timeout"
  | "unavailable" | "network" | "connection_lost" | "aborted";

/** An error whose message may be shown to the user. */
export class ParleyError extends Error {
  constructor(code: ErrorCode, detail?: string, cause?: unknown);
  readonly code: ErrorCode;
}

/**
 * The response of `POST /v1/calls/web`. A token alone is enough if this file is loaded from
 * the service and not bundled.
 */
export type Ticket =
  | string
  | {
      token?: string;
      access_token?: string;
      /** The WebSocket URL. Defaults to the service that served this file; required in a bundle. */
      url?: string;
      ice_servers?: RTCIceServer[];
      ice_transport_policy?: RTCIceTransportPolicy;
    };

export interface Options {
  /** Microphone constraints. Echo cancellation, noise suppression and gain control are on by default. */
  audio?: MediaTrackConstraints;
  /**
   * `false` joins without a microphone: the user types (`sendText`), and `setMicrophone` adds one later. The id of
   * a microphone prefers it; if it is not connected, the browser selects another one.
   */
  microphone?: boolean | string;
  /** The id of the speaker. If it cannot be used, an `error` event tells why and the default one plays. */
  speaker?: string;
  /** `true` joins with the microphone muted. */
  muted?: boolean;
  /** `false` does not play the agent's voice. `setPlayback` starts it later. */
  playback?: boolean;
  /** `false` disables `level` events. */
  levels?: boolean;
  /** Cancels joining, which rejects with `aborted` at once. */
  signal?: AbortSignal;
}

export interface Device {
  id: string;
  /** Empty until the user allows a microphone. */
  label: string;
}

export interface Devices {
  microphones: Device[];
  /** Empty if the browser cannot select a speaker. */
  speakers: Device[];
}

/** The state of the conversation or of the connection. */
export type State =
  | "connecting" | "reconnecting" | "ended"
  | "listening" | "hearing" | "closing" | "thinking" | "speaking" | "paused" | "held";

export interface Transcript {
  role: "agent" | "caller";
  text: string;
  /** Interim text may still change. */
  final: boolean;
  turn: number;
}

/** A turn as in `GET /v1/calls/{id}/turns`. Times are in milliseconds. */
export interface Turn {
  turn: number;
  ending: string;
  reason: string;
  interrupted?: boolean;
  merged_from?: number;
  metrics: { turn_ms?: number; raw: Record<string, number>; [phase: string]: unknown };
}

/** Audio levels: root mean square, 0 to 1, ten times per second. */
export interface Level {
  microphone: number;
  agent: number;
}

export interface Events {
  state: { state: State };
  transcript: Transcript;
  turn: Turn;
  level: Level;
  /** A device was connected or removed. */
  devicechange: Devices;
  /** The call may continue; only `end` marks its end. */
  error: ParleyError;
  end: { reason: string };
}

/** A call of this page. Its events are `CustomEvent`s. */
export class Call extends EventTarget {
  private constructor();
  readonly id: string;
  /** The reason for the end; empty during the call. */
  readonly reason: string;
  readonly state: State;
  readonly muted: boolean;
  readonly hasMicrophone: boolean;
  /** The id of the microphone in use; empty without one. */
  readonly microphoneId: string;
  /** The id of the speaker in use; empty for the default one. */
  readonly speakerId: string;
  /** Whether the agent's voice is played. */
  readonly playback: boolean;
  /** Resolves with the reason when the call has ended. */
  readonly ended: Promise<string>;
  /** Adds a listener that receives the event detail. Returns a function that removes it. */
  on<K extends keyof Events>(type: K, handler: (detail: Events[K]) => void): () => void;
  /** Mutes or unmutes the microphone. */
  mute(on?: boolean): void;
  /** Plays the agent's voice, or stops playing it. The transcript continues. */
  setPlayback(on?: boolean): void;
  /** Queues DTMF digits: 0 to 9, *, #, A to D; a comma pauses for 2 s. Throws a ParleyError. */
  press(keys: string): void;
  /** Sends 1 to 1,000 characters, which the agent answers like spoken words. Throws a ParleyError. */
  sendText(text: string): void;
  /** Ends the call and resolves with the reason. */
  hangUp(): Promise<string>;
  /** Switches to another microphone. On a ParleyError the current one stays in use. */
  setMicrophone(id: string): Promise<void>;
  /** Switches to another speaker if the browser supports it. Rejects with a ParleyError. */
  setSpeaker(id: string): Promise<void>;
}

export const Parley: {
  /**
   * Joins a call. Resolves when media flows; rejects with a ParleyError. ticket may be a function that returns the
   * ticket. It is called when the microphone is open. join rejects with its errors unchanged.
   */
  join(ticket: Ticket | (() => Ticket | Promise<Ticket>), options?: Options): Promise<Call>;
  /** Resumes the call of this tab after a reload; null if there is none. */
  resume(options?: Options): Promise<Call | null>;
  /** Reports whether there may be a call to resume. */
  resumable(): boolean;
  /** Lists microphones and speakers; no speakers if the browser cannot select one. */
  devices(): Promise<Devices>;
  /** Calls handler with the lists each time a device is connected or removed. Returns a function that stops this. */
  watchDevices(handler: (devices: Devices) => void): () => void;
};

export default Parley;
