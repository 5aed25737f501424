import ast
import base64
import http.server
import json
import pathlib
import threading
import unittest

import parley
from parley._transport import delay


def serve(test, *scripts, before=lambda handler: 0, read=True):
    """Starts a server that answers by the scripts (status, headers, body), in order. Returns its address and the
    headers of the requests that it gets."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do(self):
            if read:
                left = int(self.headers.get("Content-Length") or 0) - before(self)
                while left > 0:
                    left -= len(self.rfile.read(min(left, 1 << 20)))
            requests.append(self.headers)
            status, headers, body = scripts[min(len(requests), len(scripts)) - 1]
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        do_GET = do_POST = do

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)
    return f"http://127.0.0.1:{server.server_port}/", requests


class Retries(unittest.TestCase):
    def test_one_key(self):
        url, requests = serve(self, (500, {}, {}), (202, {}, {"call_id": "call_1"}))
        client = parley.Client(url, "parley_key")
        for _ in range(2):
            self.assertEqual(client.create_phone_call({"agent_id": "a", "to_number": "1"})["call_id"], "call_1")
        keys = [r["Idempotency-Key"] for r in requests]
        self.assertEqual(keys[0], keys[1])
        self.assertNotEqual(keys[1], keys[2])

    def test_limits(self):
        url, requests = serve(self, (503, {}, {"error": {"type": "service_unavailable_error", "code": "c", "message": "m"}}))
        with self.assertRaises(parley.ServiceUnavailableError):
            parley.Client(url, "parley_key", attempts=2).get_call("call_1")
        self.assertEqual(len(requests), 2)
        url, requests = serve(self, (429, {"Retry-After": "121"}, {"error": {"type": "rate_limit_error", "message": ""}}))
        with self.assertRaises(parley.RateLimitError) as caught:
            parley.Client(url, "parley_key").get_call("call_1")
        self.assertEqual((len(requests), caught.exception.retry_after), (1, 121))

    def test_redirects_are_errors(self):
        url, requests = serve(self, (302, {"Location": "/elsewhere"}, {}))
        with self.assertRaises(parley.APIError):
            parley.Client(url, "parley_key").get_call("call_1")
        self.assertEqual(len(requests), 1)

    def test_ids(self):
        for wrong in ("", ".", ".."):
            with self.assertRaises(ValueError):
                parley.Client("http://127.0.0.1:1", "parley_key").get_call(wrong)

    def test_delay(self):
        def refused(status, code="c", retry_after=None):
            return parley.ParleyError(status, {"type": "t", "code": code, "message": ""}, retry_after, None)

        for safe, error, want in (
            (True, parley.ConnectionFailed("lost"), True),
            (False, parley.ConnectionFailed("lost"), False),
            (True, refused(500), True),
            (False, refused(500), False),
            (True, refused(501), False),
            (False, refused(429, retry_after=60), True),
            (True, refused(429), False),
            (True, refused(409, "idempotency_key_in_flight"), True),
            (True, refused(409), False),
            (True, refused(502, "contact_file_storage_unavailable"), False),
        ):
            for attempt in range(1, 20):
                wait = delay(safe, error, attempt)
                self.assertEqual(wait is not None, want, (safe, error))
                self.assertTrue(wait is None or 0 < wait <= max(9, getattr(error, "retry_after", 0) or 0))


class Upload(unittest.TestCase):
    class File:
        """A file of 64 MiB that notes how far it was read."""

        size, at, read_to = 64 << 20, 0, 0

        def tell(self):
            return self.at

        def seek(self, to, whence=0):
            self.at = self.size + to if whence else to
            return self.at

        def read(self, n):
            part = b"x" * min(n, self.size - self.at)
            self.at += len(part)
            self.read_to = max(self.read_to, self.at)
            return part

    def test_streams(self):
        file, seen = self.File(), []

        def watch(handler):
            handler.rfile.read(1 << 20)
            seen.append(file.read_to)
            return 1 << 20

        url, requests = serve(self, (502, {}, {}), (201, {}, {"campaign_id": "cmp_1"}), before=watch)
        client = parley.Client(url, "parley_key")
        self.assertEqual(client.create_campaign_from_file({"name": "Spring"}, file)["campaign_id"], "cmp_1")
        self.assertLess(seen[0], file.size // 2)
        self.assertEqual(len({r["Idempotency-Key"] for r in requests}), 1)
        lengths = [int(r["Content-Length"]) for r in requests]
        self.assertEqual(lengths[0], lengths[1])
        self.assertGreater(lengths[0], file.size)

    def test_refused_early(self):
        """A server that refuses does not read the rest."""
        url, requests = serve(self, (401, {"Connection": "close"}, {"error": {"type": "authentication_error", "code": "c", "message": ""}}), read=False)
        with self.assertRaises(parley.AuthenticationError):
            parley.Client(url, "parley_key").create_campaign_from_file({"name": "Spring"}, self.File())
        self.assertEqual(len(requests), 1)


class Webhooks(unittest.TestCase):
    """Uses the example of Standard Webhooks."""

    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = '{"test": 2432232314}'
    at = 1614265330
    headers = {
        "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "Webhook-Timestamp": "1614265330",
        "Webhook-Signature": "v1,AAAA v2,x v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }

    def test_valid(self):
        self.assertEqual(parley.verify_webhook(self.secret, self.headers, self.body, self.at + 300), {"test": 2432232314})
        parley.verify_webhook(self.secret, self.headers, self.body.encode(), self.at - 300)

    def test_invalid(self):
        other = "whsec_" + base64.b64encode(bytes(24)).decode()
        for secret, headers, body, now in (
            (self.secret, self.headers, self.body, self.at + 301),
            (self.secret, self.headers, self.body, self.at - 301),
            (self.secret, self.headers, self.body + " ", self.at),
            (other, self.headers, self.body, self.at),
            (self.secret, {}, self.body, self.at),
        ):
            with self.assertRaises(parley.WebhookError):
                parley.verify_webhook(secret, headers, body, now)
        with self.assertRaises(ValueError):
            parley.verify_webhook("secret", self.headers, self.body, self.at)


class Sources(unittest.TestCase):
    def test_python_39(self):
        for file in pathlib.Path(parley.__file__).parent.glob("*.py"):
            ast.parse(file.read_text(), feature_version=(3, 9))


if __name__ == "__main__":
    unittest.main()
