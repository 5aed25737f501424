from __future__ import annotations

import http.client
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ._errors import ConnectionFailed, ParleyError, error_of

VERSION = "0.1.0"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The API never redirects, and a redirect could take the API key to another host."""

    def redirect_request(self, *args: Any) -> None:
        return None


def _attentive(do_open: Any) -> Any:
    """Returns a do_open that reads the response of a server that does not read the whole request, such as 401."""

    def opened(kind: Any, request: urllib.request.Request, **options: Any) -> Any:
        class Connection(kind):  # type: ignore[misc]
            def endheaders(self, *args: Any, **rest: Any) -> None:
                try:
                    super().endheaders(*args, **rest)
                except (BrokenPipeError, ConnectionResetError):
                    if self.sock is None:
                        raise

        return do_open(Connection, request, **options)

    return opened


class Form:
    """A body with a campaign and its list. The list is read while it is sent, and again if the request is repeated."""

    def __init__(self, campaign: Any, rows: BinaryIO) -> None:
        mark = uuid.uuid4().hex
        self.kind = f"multipart/form-data; boundary={mark}"
        part = '--%s\r\nContent-Disposition: form-data; name="%s"\r\nContent-Type: %s\r\n\r\n'
        self._before = (
            part % (mark, "campaign", "application/json")
            + json.dumps(campaign)
            + "\r\n"
            + part % (mark, 'rows"; filename="rows', "application/octet-stream")
        ).encode()
        self._after = f"\r\n--{mark}--\r\n".encode()
        self._rows, self._start = rows, rows.tell()
        self.length = len(self._before) + rows.seek(0, 2) - self._start + len(self._after)

    def __iter__(self) -> Iterator[bytes]:
        yield self._before
        self._rows.seek(self._start)
        while chunk := self._rows.read(1 << 16):
            yield chunk
        yield self._after


class Transport:
    """Sends requests and repeats them.

    Args:
        base_url: Address of the server, such as https://parley.example.
        api_key: The API key.
        timeout: Seconds to wait for the server in each attempt. The default is 30, and 130 for campaigns and their
            contacts.
        attempts: Attempts of a request, including the first; 1 disables retries.
        retry_time: Seconds after which no further attempt starts.
        handlers: Further handlers of urllib.request, such as an HTTPSHandler with a context of its own.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout: float | None = None,
        attempts: int = 4,
        retry_time: float = 120,
        handlers: tuple[urllib.request.BaseHandler, ...] = (),
    ) -> None:
        parts = urllib.parse.urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError("base_url must be like https://parley.example")
        if not api_key.strip():
            raise ValueError("api_key is empty")
        self._base = base_url.rstrip("/")
        self._key = api_key
        self._timeout = timeout
        self._attempts = attempts
        self._retry_time = retry_time
        self._opener = urllib.request.build_opener(_NoRedirect, *handlers)
        for handler in self._opener.handlers:
            if isinstance(handler, urllib.request.AbstractHTTPHandler):
                handler.do_open = _attentive(handler.do_open)  # type: ignore[method-assign]

    def _send(self, method: str, path: str, **request: Any) -> Any:
        """Sends a request and returns the JSON of the response, or the bytes of a file."""
        content_type, body = self._repeat(method, path, **request)
        return json.loads(body) if content_type.startswith("application/json") else body

    def _pages(self, items: str, method: str, path: str, *, query: Mapping[str, Any], **request: Any) -> Iterator[Any]:
        """Returns the items of all pages."""
        while True:
            page = self._send(method, path, query=query, **request)
            yield from page[items]
            cursor = page["next_cursor"]
            if not cursor or cursor == query.get("cursor"):
                return
            query = {**query, "cursor": cursor}

    def _repeat(
        self,
        method: str,
        path: str,
        *,
        id: str | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        file: BinaryIO | None = None,
        keyed: bool = False,
        idempotency_key: str | None = None,
        safe: bool = False,
        timeout: float | None = None,
    ) -> tuple[str, bytes]:
        if id is not None and not id.strip("."):
            raise ValueError("the id is empty")
        url = self._base + path.replace("{id}", urllib.parse.quote(id or "", safe=""))
        values = {name: value for name, value in (query or {}).items() if value is not None}
        if values:
            url += "?" + urllib.parse.urlencode(values)
        headers = {"Authorization": f"Bearer {self._key}", "User-Agent": f"parley-python/{VERSION}", "Accept": "*/*"}
        data: Any = None
        if file is not None:
            data = Form(body, file)
            headers.update({"Content-Type": data.kind, "Content-Length": str(data.length)})
        elif body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        if keyed:
            headers["Idempotency-Key"] = idempotency_key or uuid.uuid4().hex
        large = method == "POST" and path.startswith("/v1/campaigns")
        timeout = timeout or self._timeout or (130 if large else 30)
        end = time.monotonic() + self._retry_time
        attempt = 1
        while True:
            try:
                return self._attempt(urllib.request.Request(url, data, headers, method=method), timeout)
            except (ParleyError, ConnectionFailed) as error:
                wait = delay(safe, error, attempt)
                if wait is None or attempt >= self._attempts or time.monotonic() + wait > end:
                    raise
            time.sleep(wait)
            attempt += 1

    def _attempt(self, request: urllib.request.Request, timeout: float) -> tuple[str, bytes]:
        try:
            try:
                with self._opener.open(request, timeout=timeout) as response:
                    return response.headers.get("Content-Type", ""), response.read()
            except urllib.error.HTTPError as response:
                with response:
                    raise error_of(response.code, response.headers, response.read()) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise ConnectionFailed(f"{request.method} {request.selector} failed: {reason!r}") from error


def delay(safe: bool, error: Exception, attempt: int) -> float | None:
    """Returns how many seconds to wait before a repetition; None if the request must not be repeated."""
    backoff = random.uniform(0.1, 0.1 + min(0.5 * 2 ** (attempt - 1), 8))
    if not isinstance(error, ParleyError):
        return backoff if safe else None
    if error.status == 429:  # without Retry-After, the limit depends on calls that end
        return error.retry_after
    backoff = max(backoff, error.retry_after or 0)
    if error.status == 409:
        return backoff if error.code == "idempotency_key_in_flight" else None
    if error.status in (500, 502, 503, 504):  # after contact_file_storage_unavailable, the campaign exists as a draft
        return backoff if safe and error.code != "contact_file_storage_unavailable" else None
    return None
