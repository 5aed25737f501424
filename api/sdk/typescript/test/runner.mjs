// Runs the steps of the conformance test: a line of JSON on standard input names a method, the line on standard output
// has its result. Arguments: base URL, API key.
import { createInterface } from "node:readline";
import { ConnectionError, Parley, ParleyError, verifyWebhook, WebhookError } from "../dist/index.js";

const client = new Parley({ baseUrl: process.argv[2], apiKey: process.argv[3] });

async function run(step) {
  if (step.op === "verify-webhook") return verifyWebhook(step.secret, step.headers, step.text, new Date(step.now * 1000));
  const method = step.op.replace(/-(.)/g, (_, c) => c.toUpperCase());
  const args = [step.id, step.body, step.file && new Blob([step.file]), step.query].filter((a) => a !== undefined);
  if (step.query === undefined && step.list) args.push({});
  if (step.key) args.push({ idempotencyKey: step.key });
  const got = client[method](...args);
  if (!step.list) {
    const result = await got;
    return result instanceof Uint8Array ? new TextDecoder().decode(result) : result;
  }
  const items = [];
  for await (const item of got) items.push(item);
  return items;
}

function describe(e) {
  if (e instanceof ParleyError) {
    return {
      type: e.type, code: e.code, status: e.status, loc: e.issues[0]?.loc, retry_after: e.retryAfter,
      request_id: Boolean(e.requestId), blockers: e.blockers.length, rows: e.import?.issues.items, text: e.message,
    };
  }
  if (e instanceof WebhookError) return { type: "webhook", text: e.message };
  return { type: e instanceof ConnectionError ? "connection" : "unknown", text: String(e?.stack ?? e) };
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = { result: await run(JSON.parse(line)) };
  } catch (e) {
    answer = { error: describe(e) };
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
