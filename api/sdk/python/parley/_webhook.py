from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from ._errors import WebhookError

if TYPE_CHECKING:
    from ._generated import WebhookEvent

#: The largest accepted difference between the time of a delivery and the present, in seconds.
WEBHOOK_TOLERANCE_S = 300


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes | str, now: float | None = None) -> WebhookEvent:
    """Checks the signature and the time of a delivery and returns its event.

    The body must be exactly what was received, not parsed JSON. A delivery may arrive more than once, each time with the
    same event_id. Raises WebhookError if the delivery was not signed with the secret, or is too old.
    """
    key = _decoded(secret[len("whsec_") :]) if secret.startswith("whsec_") else b""
    if not key:
        raise ValueError("a webhook secret must be whsec_ followed by base64")
    given = {name.lower(): value for name, value in headers.items()}
    stamp = given.get("webhook-timestamp", "")
    if not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12):
        raise WebhookError("the header webhook-timestamp is missing or wrong")
    if abs((time.time() if now is None else now) - int(stamp)) > WEBHOOK_TOLERANCE_S:
        raise WebhookError(f"the delivery is more than {WEBHOOK_TOLERANCE_S} s old or early")
    raw = body.encode() if isinstance(body, str) else body
    signed = f"{given.get('webhook-id', '')}.{stamp}.".encode() + raw
    want = hmac.new(key, signed, hashlib.sha256).digest()
    for part in given.get("webhook-signature", "").split(" "):
        if part.startswith("v1,") and hmac.compare_digest(_decoded(part[3:]), want):
            try:
                return cast("WebhookEvent", json.loads(raw))
            except ValueError as error:
                raise WebhookError("the body is not JSON") from error
    raise WebhookError("no signature fits the secret")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
