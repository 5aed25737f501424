from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Mapping

if TYPE_CHECKING:
    from ._generated import Blocker, Import


class ParleyError(Exception):
    """The response to a request that failed. Classify by class, or by type and status; code names the cause."""

    def __init__(self, status: int, error: Mapping[str, Any], retry_after: float | None, request_id: str | None) -> None:
        self.status = status
        self.type: str = str(error.get("type", "api_error"))
        self.code: str = str(error.get("code", self.type))
        message = error.get("message", "")
        #: Text for people; not part of the contract.
        self.message: str = message if isinstance(message, str) else ""
        #: What is wrong with the request, if code is invalid_request: objects with type, loc, msg and input.
        self.issues: list[dict[str, Any]] = message if isinstance(message, list) else []
        #: Why a campaign cannot be launched, if code is launch_blocked.
        self.blockers: list[Blocker] = error.get("blockers") or []
        #: The report of a batch that was refused.
        self.import_report: Import | None = error.get("import")
        #: Seconds that the server asks to wait.
        self.retry_after = retry_after
        #: Identifies the request in the log of the server.
        self.request_id = request_id
        text = f"{status} {self.code}"
        if self.message:
            text += f": {self.message}"
        for issue in self.issues:
            text += f"; {'.'.join(map(str, issue.get('loc', [])))}: {issue.get('msg')}"
        if request_id:
            text += f" (request {request_id})"
        super().__init__(text)


class InvalidRequestError(ParleyError):
    pass


class AuthenticationError(ParleyError):
    pass


class PermissionDeniedError(ParleyError):
    pass


class NotFoundError(ParleyError):
    pass


class ConflictError(ParleyError):
    pass


class RateLimitError(ParleyError):
    pass


class ServiceUnavailableError(ParleyError):
    pass


class APIError(ParleyError):
    pass


class ConnectionFailed(Exception):
    """The connection failed, or the server did not respond in time."""


class WebhookError(Exception):
    """A webhook that was not signed with the secret, or that is too old. Respond with 400."""


_CLASSES = {
    "invalid_request_error": InvalidRequestError,
    "authentication_error": AuthenticationError,
    "permission_error": PermissionDeniedError,
    "not_found_error": NotFoundError,
    "conflict_error": ConflictError,
    "rate_limit_error": RateLimitError,
    "service_unavailable_error": ServiceUnavailableError,
}


def error_of(status: int, headers: Mapping[str, str], body: bytes) -> ParleyError:
    """Converts a response that is not successful."""
    try:
        error = json.loads(body)["error"]
        error["type"]
    except (ValueError, KeyError, TypeError):  # the response of a proxy
        error = {"type": "api_error", "message": "the response has no error object"}
    wait = headers.get("Retry-After") or ""
    retry_after = float(wait) if wait.isdigit() and int(wait) > 0 else None
    kind = _CLASSES.get(str(error["type"]), APIError)
    return kind(status, error, retry_after, headers.get("X-Request-Id"))
