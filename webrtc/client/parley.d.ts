/** Why a call could not be joined, or what went wrong in it. */
export type ErrorCode =
  | "insecure_origin" | "unsupported"
  | "microphone_denied" | "microphone_missing" | "microphone_busy" | "microphone_lost"
  | "speaker_unsupported" | "speaker_missing" | "audio_blocked" | "keys_invalid" | "keys_unsupported"
  | "token_missing" | "token_invalid" | "token_expired" | "token_used" | "wrong_call"
  | "call_ended" | "resume_unknown" | "sdp_invalid" | "message_invalid" | "too_many_messages" | "join_timeout"
  | "unavailable" | "network" | "connection_lost" | "aborted";

/** An error whose message may be shown to a visitor. */
export class ParleyError extends Error {
  constructor(code: ErrorCode, detail?: string, cause?: unknown);
  readonly code: ErrorCode;
}

/**
 * What a call is joined with: the whole answer of `POST /v1/calls/web`, or a token alone
 * where this file is loaded from the service itself, not bundled.
 */
export type Ticket =
  | string
  | {
      token?: string;
      access_token?: string;
      /** The socket. Without it that of the service which served this file; needed where that is bundled. */
      url?: string;
      ice_servers?: RTCIceServer[];
      ice_transport_policy?: RTCIceTransportPolicy;
    };

export interface Options {
  /** Wishes about the microphone; echo cancellation, noise suppression and gain control are on. */
  audio?: MediaTrackConstraints;
  /** `false` tells no levels. */
  levels?: boolean;
  /** Gives up joining: it rejects with `aborted` at once, whatever it waits for. */
  signal?: AbortSignal;
}

export interface Device {
  id: string;
  /** Empty until a microphone was allowed. */
  label: string;
}

/** Who has the floor, or how the connection is. */
export type State =
  | "connecting" | "reconnecting" | "ended"
  | "listening" | "hearing" | "closing" | "thinking" | "speaking" | "paused" | "held";

export interface Transcript {
  role: "agent" | "caller";
  text: string;
  /** What is not final may still change. */
  final: boolean;
  turn: number;
}

/** What a turn cost: the item of `GET /v1/calls/{id}/turns`. Times are in milliseconds. */
export interface Turn {
  turn: number;
  ending: string;
  reason: string;
  interrupted?: boolean;
  merged_from?: number;
  metrics: { turn_ms?: number; raw: Record<string, number>; [phase: string]: unknown };
}

/** How loud both sides are: root mean square, 0 to 1, ten times a second. */
export interface Level {
  microphone: number;
  agent: number;
}

export interface Events {
  state: { state: State };
  transcript: Transcript;
  turn: Turn;
  level: Level;
  /** The call may go on: it is over at `end` only. */
  error: ParleyError;
  end: { reason: string };
}

/** A call that this page takes part in. Its events are `CustomEvent`s, too. */
export class Call extends EventTarget {
  private constructor();
  readonly id: string;
  /** Why the call is over; empty until then. */
  readonly reason: string;
  readonly state: State;
  readonly muted: boolean;
  /** Resolves with the reason when the call is over. */
  readonly ended: Promise<string>;
  /** Hears an event by its detail. Returns what stops it. */
  on<K extends keyof Events>(type: K, heard: (detail: Events[K]) => void): () => void;
  /** Mutes the microphone, or lets it be heard. */
  mute(on?: boolean): void;
  /** Presses the keys of a telephone, after those before them: 0 to 9, *, #, A to D; a comma waits for 2 s. Throws a ParleyError. */
  press(keys: string): void;
  /** Ends the call, and resolves with its reason. */
  hangUp(): Promise<string>;
  /** Speaks into another microphone. Rejects with a ParleyError, and goes on with the one before. */
  setMicrophone(id: string): Promise<void>;
  /** Is heard from another speaker, where the browser can. Rejects with a ParleyError. */
  setSpeaker(id: string): Promise<void>;
}

export const Parley: {
  /**
   * Joins a call by its token. Resolves when media flows; rejects with a ParleyError.
   * A ticket that is a function is asked for once the microphone is there; what it
   * throws comes as it is.
   */
  join(ticket: Ticket | (() => Ticket | Promise<Ticket>), options?: Options): Promise<Call>;
  /** Goes on with the call that this tab had before it was reloaded; null where there is none. */
  resume(options?: Options): Promise<Call | null>;
  /** Whether there may be a call to resume. */
  resumable(): boolean;
  /** Microphones and speakers; no speakers where the browser cannot choose one. */
  devices(): Promise<{ microphones: Device[]; speakers: Device[] }>;
};

export default Parley;
