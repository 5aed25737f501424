import type { components } from "./schema.js";

type Schemas = components["schemas"];

/** One reason why a request does not fit its schema. */
export interface Issue {
  type: string;
  /** Path of the value, such as ["body", "planned_calls", 3]. */
  loc: (string | number)[];
  msg: string;
  input: unknown;
}

export interface ErrorDetails {
  status: number;
  type: string;
  code: string;
  message: string;
  issues: Issue[];
  blockers: Schemas["Blocker"][];
  import?: Schemas["Import"] | undefined;
  retryAfter?: number | undefined;
  requestId?: string | undefined;
}

/** The response to a request that failed. Classify by class, or by `type` and `status`; `code` names the cause. */
export class ParleyError extends Error {
  readonly status: number;
  readonly type: string;
  readonly code: string;
  /** What is wrong with the request, if `code` is invalid_request. */
  readonly issues: Issue[];
  /** Why a campaign cannot be launched, if `code` is launch_blocked. */
  readonly blockers: Schemas["Blocker"][];
  /** The report of a batch that was refused. */
  readonly import: Schemas["Import"] | undefined;
  /** Seconds that the server asks to wait. */
  readonly retryAfter: number | undefined;
  /** Identifies the request in the log of the server. */
  readonly requestId: string | undefined;

  constructor(d: ErrorDetails) {
    const issues = d.issues.map((i) => `; ${i.loc.join(".")}: ${i.msg}`).join("");
    super(`${d.status} ${d.code}${d.message && ": " + d.message}${issues}${d.requestId ? ` (request ${d.requestId})` : ""}`);
    this.name = new.target.name;
    this.status = d.status;
    this.type = d.type;
    this.code = d.code;
    this.issues = d.issues;
    this.blockers = d.blockers;
    this.import = d.import;
    this.retryAfter = d.retryAfter;
    this.requestId = d.requestId;
  }
}

export class InvalidRequestError extends ParleyError {}
export class AuthenticationError extends ParleyError {}
export class PermissionError extends ParleyError {}
export class NotFoundError extends ParleyError {}
export class ConflictError extends ParleyError {}
export class RateLimitError extends ParleyError {}
export class ServiceUnavailableError extends ParleyError {}
export class APIError extends ParleyError {}

/** The connection failed, or the request took too long. `cause` has the reason. */
export class ConnectionError extends Error {
  override name = "ConnectionError";
}

/** A webhook that was not signed with the secret, or that is too old. Respond with 400. */
export class WebhookError extends Error {
  override name = "WebhookError";
}

const classes: Record<string, new (d: ErrorDetails) => ParleyError> = {
  invalid_request_error: InvalidRequestError,
  authentication_error: AuthenticationError,
  permission_error: PermissionError,
  not_found_error: NotFoundError,
  conflict_error: ConflictError,
  rate_limit_error: RateLimitError,
  service_unavailable_error: ServiceUnavailableError,
};

/** Converts a response that is not successful. */
export function errorOf(status: number, headers: Headers, text: string): ParleyError {
  const details: ErrorDetails = { status, type: "api_error", code: "api_error", message: "", issues: [], blockers: [] };
  const seconds = Number(headers.get("retry-after"));
  if (seconds > 0) details.retryAfter = seconds;
  details.requestId = headers.get("x-request-id") ?? undefined;
  try {
    const e = (JSON.parse(text) as { error: Record<string, unknown> }).error;
    details.type = String(e["type"]);
    details.code = String(e["code"]);
    if (Array.isArray(e["message"])) details.issues = e["message"] as Issue[];
    else details.message = String(e["message"]);
    details.blockers = (e["blockers"] as Schemas["Blocker"][] | undefined) ?? [];
    details.import = e["import"] as Schemas["Import"] | undefined;
  } catch {
    details.message = "the response has no error object"; // it is that of a proxy
  }
  return new (classes[details.type] ?? APIError)(details);
}
