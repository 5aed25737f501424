export * from "./errors.js";
export * from "./operations.js";
export { Parley } from "./client.js";
export { VERSION, type ClientOptions, type RequestOptions } from "./transport.js";
export { verifyWebhook, WEBHOOK_TOLERANCE_S } from "./webhook.js";
