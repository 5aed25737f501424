import { ConnectionError, errorOf, ParleyError } from "./errors.js";

/** The version of this package. */
export const VERSION = "0.1.0";

export interface ClientOptions {
  /** Address of the server, such as https://parley.example. */
  baseUrl: string;
  apiKey: string;
  /** Milliseconds for each attempt of a request. The default is 30,000, and 130,000 for campaigns and their contacts. */
  timeoutMs?: number;
  /** Attempts of a request, including the first. The default is 4; 1 disables retries. */
  attempts?: number;
  /** Milliseconds after which no further attempt starts. The default is 120,000. */
  retryTimeMs?: number;
  /** A replacement of the global fetch. */
  fetch?: typeof fetch;
}

export interface RequestOptions {
  /** Of requests that create something. By default, the client generates one for each method call. */
  idempotencyKey?: string;
  timeoutMs?: number;
  /** Ends the request and its retries. */
  signal?: AbortSignal;
}

/** A request of the API. */
export interface Request {
  method: string;
  path: string;
  id?: string;
  query?: object;
  body?: object;
  /** Sent in a form, after the body. */
  file?: Blob;
  /** Takes an Idempotency-Key. */
  keyed?: boolean;
  /** May be repeated even if the server may have received it. */
  safe?: boolean;
}

type Fetched = { status: number; headers: Headers; body: Uint8Array };

/** Sends requests and repeats them. */
export class Transport {
  readonly #options: ClientOptions;
  readonly #base: string;

  constructor(options: ClientOptions) {
    const url = new URL(options.baseUrl); // throws if it is none
    if (url.protocol !== "https:" && url.protocol !== "http:") throw new TypeError("baseUrl must be like https://parley.example");
    if (!options.apiKey.trim()) throw new TypeError("apiKey is empty");
    this.#options = options;
    this.#base = options.baseUrl.replace(/\/+$/, "");
  }

  /** Sends a request and returns the JSON of the response. */
  protected async send<T>(r: Request, options?: RequestOptions): Promise<T> {
    return JSON.parse(new TextDecoder().decode(await this.download(r, options))) as T;
  }

  /** Sends a request and returns the response as it is. */
  protected async download(r: Request, options: RequestOptions = {}): Promise<Uint8Array> {
    if (r.id !== undefined && /^\.*$/.test(r.id)) throw new TypeError("the id is empty");
    const key = r.keyed ? (options.idempotencyKey ?? randomKey()) : undefined;
    const end = Date.now() + (this.#options.retryTimeMs ?? 120_000);
    for (let attempt = 1; ; attempt++) {
      let error: unknown;
      try {
        const got = await this.#attempt(r, key, options);
        if (got.status >= 200 && got.status < 300) return got.body;
        error = errorOf(got.status, got.headers, new TextDecoder().decode(got.body));
      } catch (e) {
        if (options.signal?.aborted) throw e;
        error = e;
      }
      const wait = delay(r, error, attempt);
      if (wait === undefined || attempt >= (this.#options.attempts ?? 4) || Date.now() + wait > end) throw error;
      await sleep(wait, options.signal);
    }
  }

  /** Returns the items of all pages. */
  protected async *pages<T>(r: Request, items: string, options?: RequestOptions): AsyncGenerator<T, void, undefined> {
    for (let cursor: string | undefined; ; ) {
      const query = cursor === undefined ? r.query : { ...r.query, cursor };
      const page = await this.send<Record<string, unknown>>({ ...r, query: query ?? {} }, options);
      yield* page[items] as T[];
      const next = page["next_cursor"] as string | null;
      if (!next || next === cursor) return;
      cursor = next;
    }
  }

  async #attempt(r: Request, key: string | undefined, options: RequestOptions): Promise<Fetched> {
    const large = r.method === "POST" && r.path.startsWith("/v1/campaigns");
    const timeout = options.timeoutMs ?? this.#options.timeoutMs ?? (large ? 130_000 : 30_000);
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#options.apiKey}`, "User-Agent": `parley-typescript/${VERSION}` };
    const body = r.file ? formOf(r.body, r.file) : r.body && JSON.stringify(r.body);
    if (typeof body === "string") headers["Content-Type"] = "application/json";
    if (key !== undefined) headers["Idempotency-Key"] = key;
    const stop = new AbortController();
    const abort = () => stop.abort(options.signal?.reason);
    if (options.signal?.aborted) abort();
    options.signal?.addEventListener("abort", abort);
    const timer = setTimeout(() => stop.abort(new Error(`no response within ${timeout} ms`)), timeout);
    try {
      const response = await (this.#options.fetch ?? fetch)(urlOf(this.#base, r), {
        method: r.method,
        headers,
        redirect: "manual", // the API never redirects, and a redirect could take the key to another host
        signal: stop.signal,
        ...(body === undefined ? {} : { body }),
      });
      return { status: response.status, headers: response.headers, body: new Uint8Array(await response.arrayBuffer()) };
    } catch (cause) {
      if (options.signal?.aborted) throw cause;
      throw new ConnectionError(`${r.method} ${r.path} failed: ${describe(cause)}`, { cause });
    } finally {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", abort);
    }
  }
}

/** Returns a form of the campaign and its list. fetch reads the list while it sends it. */
function formOf(campaign: unknown, rows: Blob): FormData {
  const form = new FormData();
  form.append("campaign", JSON.stringify(campaign));
  form.append("rows", rows, "rows");
  return form;
}

function describe(cause: unknown): string {
  const e = cause as { message?: string; cause?: { message?: string } };
  return e.cause?.message ?? e.message ?? String(cause);
}

function urlOf(base: string, r: Request): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(r.query ?? {})) {
    if (value !== undefined && value !== null) query.set(name, String(value));
  }
  const path = r.path.replace("{id}", () => encodeURIComponent(r.id ?? ""));
  return base + path + (query.size || query.toString() ? `?${query}` : "");
}

/** Returns how many milliseconds to wait before a repetition; undefined if the request must not be repeated. */
export function delay(r: Request, error: unknown, attempt: number): number | undefined {
  let backoff = Math.random() * Math.min(500 * 2 ** (attempt - 1), 8_000) + 100;
  if (!(error instanceof ParleyError)) return r.safe && error instanceof ConnectionError ? backoff : undefined;
  backoff = Math.max(backoff, (error.retryAfter ?? 0) * 1000);
  switch (error.status) {
    case 429: // without Retry-After, the limit depends on calls that end
      return error.retryAfter === undefined ? undefined : error.retryAfter * 1000;
    case 409:
      return error.code === "idempotency_key_in_flight" ? backoff : undefined;
    case 500:
    case 502:
    case 503:
    case 504: // after contact_file_storage_unavailable, the campaign exists as a draft
      return r.safe && error.code !== "contact_file_storage_unavailable" ? backoff : undefined;
    default:
      return undefined;
  }
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, ms);
    function done() {
      signal?.removeEventListener("abort", abort);
      resolve();
    }
    function abort() {
      clearTimeout(timer);
      reject(signal?.reason);
    }
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}

function randomKey(): string {
  const bytes = new Uint8Array(16);
  const c = globalThis.crypto as Crypto | undefined; // Node.js 18 has no global crypto; these keys need no secrecy
  if (c) c.getRandomValues(bytes);
  else for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(Math.random() * 256);
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}
