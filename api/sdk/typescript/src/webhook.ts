import { WebhookError } from "./errors.js";
import type { WebhookEvent } from "./operations.js";

/** The largest accepted difference between the time of a delivery and the present, in seconds. */
export const WEBHOOK_TOLERANCE_S = 300;

/** Headers of a request: those of fetch, or those of Node.js. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

/**
 * Checks the signature and the time of a delivery and returns its event. The body must be exactly what was received,
 * not parsed JSON. A delivery may arrive more than once, each time with the same `event_id`.
 *
 * @throws WebhookError if the delivery was not signed with the secret, or is too old.
 */
export async function verifyWebhook(
  secret: string,
  headers: WebhookHeaders,
  body: string | Uint8Array,
  now: Date = new Date(),
): Promise<WebhookEvent> {
  const subtle = await subtleCrypto();
  const key = await subtle.importKey("raw", keyOf(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  const stamp = header(headers, "webhook-timestamp");
  if (!/^\d{1,12}$/.test(stamp)) throw new WebhookError("the header webhook-timestamp is missing or wrong");
  if (Math.abs(now.getTime() / 1000 - Number(stamp)) > WEBHOOK_TOLERANCE_S) {
    throw new WebhookError(`the delivery is more than ${WEBHOOK_TOLERANCE_S} s old or early`);
  }
  const raw = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const prefix = new TextEncoder().encode(`${header(headers, "webhook-id")}.${stamp}.`);
  const signed = new Uint8Array(prefix.length + raw.length);
  signed.set(prefix);
  signed.set(raw, prefix.length);
  for (const part of header(headers, "webhook-signature").split(" ")) {
    const signature = part.startsWith("v1,") ? bytesOf(part.slice(3)) : undefined;
    if (signature && (await subtle.verify("HMAC", key, signature, signed))) { // takes constant time
      try {
        return JSON.parse(new TextDecoder().decode(raw)) as WebhookEvent;
      } catch (cause) {
        throw new WebhookError("the body is not JSON", { cause });
      }
    }
  }
  throw new WebhookError("no signature fits the secret");
}

function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const key = secret.startsWith("whsec_") ? bytesOf(secret.slice(6)) : undefined;
  if (!key?.length) throw new TypeError("a webhook secret must be whsec_ followed by base64");
  return key;
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function header(headers: WebhookHeaders, name: string): string {
  if (typeof (headers as Headers).get === "function") return (headers as Headers).get(name) ?? "";
  for (const [key, value] of Object.entries(headers as Record<string, string | string[] | undefined>)) {
    if (key.toLowerCase() === name) return Array.isArray(value) ? value.join(" ") : (value ?? "");
  }
  return "";
}

async function subtleCrypto(): Promise<SubtleCrypto> {
  const c = globalThis.crypto as Crypto | undefined;
  if (c?.subtle) return c.subtle;
  const name = "node:crypto"; // Node.js 18 has no global crypto
  const node = (await import(name)) as { webcrypto: Crypto };
  return node.webcrypto.subtle;
}
