"""Client of the Parley API, which places phone calls that voice agents handle.

A client repeats requests after lost connections, server errors and rate limits. Requests that create something are
repeated with the same Idempotency-Key, so that they have one effect. Failed requests raise a ParleyError.
"""

from ._errors import (
    APIError,
    AuthenticationError,
    ConflictError,
    ConnectionFailed,
    InvalidRequestError,
    NotFoundError,
    ParleyError,
    PermissionDeniedError,
    RateLimitError,
    ServiceUnavailableError,
    WebhookError,
)
from ._generated import *  # noqa: F403
from ._generated import Operations
from ._transport import VERSION as __version__
from ._webhook import WEBHOOK_TOLERANCE_S, verify_webhook


class Client(Operations):
    """A client of the Parley API. It is safe to use from several threads."""


__all__ = [name for name in dir() if not name.startswith("_")]
