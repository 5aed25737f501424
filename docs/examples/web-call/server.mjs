// Serves the page of a web call, and creates calls. The API key stays on this server. For Node.js 18 or later.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";

const parley = process.env.PARLEY_API_URL ?? "http://127.0.0.1:8080";
const key = process.env.PARLEY_API_KEY;
const agent = process.env.AGENT ?? "demo";

const files = { "/": ["index.html", "text/html"], "/app.js": ["app.js", "text/javascript"], "/style.css": ["style.css", "text/css"] };
const policy = `default-src 'self'; connect-src 'self' ${parley.replace("http", "ws")}; frame-ancestors 'none'`;

async function answer(request, response) {
  const [name, type] = files[request.url] ?? [];
  if (request.method === "GET" && name) {
    const body = await readFile(new URL(name, import.meta.url));
    response.writeHead(200, { "Content-Type": `${type}; charset=utf-8`, "Content-Security-Policy": policy }).end(body);
  } else if (request.method === "GET" && request.url === "/parley.js") {
    const client = await fetch(`${parley}/rtc/parley.js`); // or the file of the npm package
    response.writeHead(client.status, { "Content-Type": "text/javascript; charset=utf-8" }).end(await client.text());
  } else if (request.method === "POST" && request.url === "/call") {
    await createCall(request, response);
  } else {
    response.writeHead(404).end();
  }
}

async function createCall(request, response) {
  // Limit here who may call, and how often: each call costs money.
  if (request.headers["sec-fetch-site"] !== "same-origin") return response.writeHead(403).end();
  const created = await fetch(`${parley}/v1/calls/web`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify({ agent_id: agent, max_duration_s: 300, metadata: { source: "website" } }),
  });
  if (created.status !== 201) console.error(created.status, await created.clone().text());
  response.writeHead(created.status, { "Content-Type": "application/json", "Cache-Control": "no-store" }).end(await created.text());
}

createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(error);
    if (!response.headersSent) response.writeHead(502);
    response.end();
  });
}).listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
