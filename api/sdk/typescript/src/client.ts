import { Operations } from "./operations.js";

/**
 * A client of the Parley API.
 *
 * It repeats requests after lost connections, server errors and rate limits. Requests that create something are repeated
 * with the same Idempotency-Key, so that they have one effect. Failed requests throw a {@link ParleyError}.
 */
export class Parley extends Operations {}
