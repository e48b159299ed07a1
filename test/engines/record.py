#!/usr/bin/env python3
"""record.py URL FOLDER NAME: records the metrics page of an OpenAI-compatible server that serves the model tiny-random.

FOLDER/NAME_idle.txt is the page before any request. Then requests are sent: the same long prompt twice, so that a prefix
cache hits; one without streaming; one for an unknown model; one stream that is left after its first chunk. NAME_busy.txt
is read while four of twelve streams run, and NAME_done.txt after their end.

A page is written as the server sent it, byte by byte, and again as NAME_STATE.om.txt where the server answers in
OpenMetrics when that is asked for. It needs nothing but Python's library.
"""

import concurrent.futures
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request

URL, FOLDER, NAME = sys.argv[1:]
MODEL = "tiny-random"
OUTPUT = int(os.environ.get("OUTPUT", "900"))  # tokens of each of the twelve streams
SLOTS = 4  # requests that the server runs at once; the others of the twelve wait
TEXT = "text/plain;version=0.0.4"
OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.9,text/plain;version=0.0.4;q=0.1"


def page(accept):
    """Returns the page and its content type."""
    request = urllib.request.Request(URL + "/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read(), answer.headers["Content-Type"]


def record(state):
    """Writes the page of this moment, in each of its formats."""
    for accept, ending in ((TEXT, "txt"), (OPENMETRICS, "om.txt")):
        content, kind = page(accept)
        print(f"{NAME}_{state}: {len(content)} bytes, asked for {accept}, got {kind}")
        if accept == TEXT or kind.startswith("application/openmetrics-text"):
            with open(f"{FOLDER}/{NAME}_{state}.{ending}", "wb") as file:
                file.write(content)


def chat(words, output, stream=True, leave=False, model=MODEL, begun=None):
    """Sends one chat request and returns its usage, or None where it was left after the first chunk."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": words}],
        "max_tokens": output,
        "ignore_eos": True,
        "stream": stream,
    }
    if stream:
        body["stream_options"] = {"include_usage": True}
    request = urllib.request.Request(
        URL + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    usage, first = None, True
    with urllib.request.urlopen(request, timeout=300) as answer:
        if not stream:
            return json.load(answer)["usage"]
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            if begun and first:
                begun.release()
            first = False
            if leave:
                return None
            usage = json.loads(line[6:]).get("usage") or usage
    return usage


def words(first, count):
    return " ".join(f"w{(first + i) % 1000}" for i in range(count))


record("idle")
for _ in range(2):
    print("the same prompt:", chat(words(0, 600), 32))
print("without streaming:", chat(words(7, 50), 16, stream=False))
try:
    chat(words(0, 10), 4, model="unknown")
except urllib.error.HTTPError as error:
    print("an unknown model:", error.code)
chat(words(11, 50), 1000, leave=True)

begun = threading.Semaphore(0)
with concurrent.futures.ThreadPoolExecutor(12) as pool:
    running = [pool.submit(chat, words(20 * i, 500 + 40 * i), OUTPUT, begun=begun) for i in range(12)]
    for _ in range(SLOTS):
        begun.acquire(timeout=60)
    time.sleep(0.3)  # the engine renews its gauges once a step
    record("busy")
    for each in running:
        print("a stream:", each.result())
time.sleep(1)
record("done")
