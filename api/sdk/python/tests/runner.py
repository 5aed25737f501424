"""Runs the steps of the conformance test: a line of JSON on standard input names a method, the line on standard output
has its result. Arguments: base URL, API key."""

import io
import json
import sys

import parley

client = parley.Client(sys.argv[1], sys.argv[2])


def run(step):
    if step["op"] == "verify-webhook":
        return parley.verify_webhook(step["secret"], step["headers"], step["text"], step["now"])
    args = [step["id"]] if "id" in step else []
    options = dict(step.get("query", {}))
    if "body" in step:
        options["body"] = step["body"]
    if "file" in step:
        options["file"] = io.BytesIO(step["file"].encode())
    if "key" in step:
        options["idempotency_key"] = step["key"]
    got = getattr(client, step["op"].replace("-", "_"))(*args, **options)
    if step.get("list"):
        return list(got)
    return got.decode() if isinstance(got, bytes) else got


def describe(e):
    if isinstance(e, parley.ParleyError):
        return {
            "type": e.type, "code": e.code, "status": e.status, "loc": e.issues[0]["loc"] if e.issues else None,
            "retry_after": e.retry_after, "request_id": bool(e.request_id), "blockers": len(e.blockers), "text": str(e),
            "rows": e.import_report["issues"]["items"] if e.import_report else None,
        }
    kinds = {parley.WebhookError: "webhook", parley.ConnectionFailed: "connection"}
    return {"type": kinds.get(type(e), "unknown"), "text": repr(e)}


for line in sys.stdin:
    try:
        answer = {"result": run(json.loads(line))}
    except Exception as e:
        answer = {"error": describe(e)}
    print(json.dumps(answer), flush=True)
