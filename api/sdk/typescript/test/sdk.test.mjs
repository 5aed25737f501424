import assert from "node:assert/strict";
import { test } from "node:test";
import { ConflictError, Parley, ParleyError, PermissionError, RateLimitError, verifyWebhook, WebhookError } from "../dist/index.js";

/** Returns a client whose fetch answers by the scripts, in order, and the requests that it got. */
function client(options, ...scripts) {
  const requests = [];
  const fetch = async (url, init) => {
    requests.push({ url, ...init });
    const answer = scripts[Math.min(requests.length, scripts.length) - 1];
    if (answer instanceof Error) throw answer;
    return new Response(JSON.stringify(answer.body ?? {}), { status: answer.status, headers: answer.headers ?? {} });
  };
  return [new Parley({ baseUrl: "https://parley.example/", apiKey: "parley_key", fetch, ...options }), requests];
}

const refused = (status, type, headers) => ({ status, headers, body: { error: { type, code: "some_code", status, message: "why" } } });

test("a repeated request has the same key, another call a new one", async () => {
  const [c, requests] = client({}, new TypeError("fetch failed"), { status: 202, body: { call_id: "call_1" } });
  for (let i = 0; i < 2; i++) assert.equal((await c.createPhoneCall({ agent_id: "a", to_number: "1" })).call_id, "call_1");
  const keys = requests.map((r) => r.headers["Idempotency-Key"]);
  assert.equal(requests[0].url, "https://parley.example/v1/calls/phone");
  assert.equal(keys[0], keys[1]);
  assert.notEqual(keys[1], keys[2]);
  assert.match(keys[0], /^[0-9a-f]{32}$/);
});

test("what must not be repeated is sent once", async () => {
  for (const [answer, error] of [
    [refused(429, "rate_limit_error"), RateLimitError], // without Retry-After
    [refused(429, "rate_limit_error", { "retry-after": "121" }), RateLimitError],
    [refused(403, "permission_error"), PermissionError],
    [refused(409, "conflict_error"), ConflictError],
    [refused(500, "api_error"), ParleyError, "createKey"],
    [new TypeError("fetch failed"), Error, "createKey"],
  ].map(([a, e, m]) => [a, { error: e, method: m ?? "pauseCampaign" }])) {
    const [c, requests] = client({}, answer);
    const call = error.method === "createKey" ? c.createKey({ organization_id: "o" }) : c.pauseCampaign("cmp_1");
    await assert.rejects(call, error.error);
    assert.equal(requests.length, 1);
  }
});

test("attempts, an aborted request and a time-out are limits", async () => {
  const [c, requests] = client({ attempts: 2 }, refused(503, "service_unavailable_error"));
  await assert.rejects(c.getCall("call_1"), { status: 503, type: "service_unavailable_error" });
  assert.equal(requests.length, 2);
  const [waiting] = client({}, refused(429, "rate_limit_error", { "retry-after": "60" }));
  await assert.rejects(waiting.getCall("call_1", { signal: AbortSignal.timeout(20) }), { name: "TimeoutError" });
  const hang = (_, init) => new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)));
  const [slow] = client({ fetch: hang, attempts: 1 }, {});
  await assert.rejects(slow.getCall("call_1", { timeoutMs: 20 }), { name: "ConnectionError" });
  await assert.rejects(slow.getCall(".."), TypeError);
});

// The example of Standard Webhooks.
test("verifyWebhook", async () => {
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const body = '{"test": 2432232314}';
  const headers = {
    "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "Webhook-Timestamp": "1614265330",
    "Webhook-Signature": "v1,AAAA v2,x v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  };
  const at = (s) => new Date((1614265330 + s) * 1000);
  assert.deepEqual(await verifyWebhook(secret, headers, body, at(300)), { test: 2432232314 });
  await verifyWebhook(secret, new Headers(headers), new TextEncoder().encode(body), at(-300));
  for (const [s, h, b, t] of [
    [secret, headers, body, at(301)],
    [secret, headers, body, at(-301)],
    [secret, headers, body + " ", at(0)],
    ["whsec_" + btoa("another secret of 24 byte"), headers, body, at(0)],
    [secret, {}, body, at(0)],
  ]) {
    await assert.rejects(verifyWebhook(s, h, b, t), WebhookError);
  }
  await assert.rejects(verifyWebhook("secret", headers, body, at(0)), TypeError);
});
