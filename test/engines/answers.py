#!/usr/bin/env python3
"""answers.py URL MODEL FOLDER ORIGIN COMMAND [PID [PAGE [LOG]]]: records a server's answers as they come from its socket.

Each case is one request over a connection of its own, written as FOLDER/CASE.json: the bytes of the request, and the bytes
of each read of the answer with its instant, in microseconds since the request was passed to the kernel. "end" says how the
connection ended: kept (the answer was complete, the connection still open), closed or reset (by the server), silent (no more
came) or left (by this client, in mid-answer). "after" is what the server's page PAGE and its log LOG say of an answer that
broke off.

PID is the process that gets SIGTERM in mid-answer, in the last case. In the environment, PAUSE is the URL of vLLM's call that
pauses the server and ends what it runs, BACKEND the process behind a gateway that gets a signal, and ONLY lists cases as
patterns. Without ONLY they are the usual ones: not those of reasoning, for which a server is started anew, because a
reasoning parser takes all text for reasoning until that ends.

The server must serve the model of scriptmodel.py, whose answers follow from the last word of the prompt. It needs nothing but
Python's library.
"""

import datetime
import fnmatch
import json
import os
import re
import signal
import socket
import sys
import threading
import time
import urllib.parse
import urllib.request

URL, MODEL, FOLDER, ORIGIN, COMMAND = sys.argv[1:6]
PID, PAGE, LOG = (sys.argv[6:] + ["", "", ""])[:3]
PAUSE, BACKEND = os.environ.get("PAUSE"), os.environ.get("BACKEND")
ADDRESS = urllib.parse.urlsplit(URL)
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
SILENT = 12  # seconds without a byte, after which the client goes

# Lines of a log that tell nothing of an answer.
UNTOLD = re.compile(r"^\s|/metrics|resource_tracker|warnings.warn|/site-packages/")
ANSI = re.compile(r"\x1b\[[0-9;]*m")
WEATHER = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Paris"]}}, "required": ["city"]}
TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "the weather", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
]
NAMED = {"type": "function", "function": {"name": "weather"}}


def chat(words, tokens=8, **more):
    return CHAT, {"messages": [{"role": "user", "content": words}], "max_tokens": tokens, **more}


def completions(words, tokens=8, **more):
    return COMPLETIONS, {"prompt": " " + words, "max_tokens": tokens, **more}


def stream(request, **options):
    path, body = request
    return path, {**body, "stream": True, "stream_options": {"include_usage": True, **options}}


WORDS = " ".join(f"w{i}" for i in range(1, 6))
MANY = " ".join(f"w{i}" for i in range(260))
EXACT = {"ignore_eos": True}
CASES = {
    "chat_stream": stream(chat(WORDS, **EXACT)),
    "chat_whole": chat(WORDS, **EXACT),
    "completions_stream": stream(completions(WORDS, **EXACT)),
    "completions_whole": completions(WORDS, **EXACT),
    "stop_stream": stream(chat("stop", 30)),
    "usage_each_chunk": stream(chat(WORDS, **EXACT), continuous_usage_stats=True),
    "usage_each_chunk_completions": stream(completions(WORDS, **EXACT), continuous_usage_stats=True),
    "logprobs_stream": stream(chat(WORDS, 4, logprobs=True, top_logprobs=2, **EXACT)),
    "logprobs_completions_stream": stream(completions(WORDS, 4, logprobs=2, **EXACT)),
    "choices_stream": stream(chat(WORDS, 4, n=2, temperature=1, **EXACT)),
    "choices_completions_whole": completions(WORDS, 4, n=2, temperature=1, **EXACT),
    "tool_stream": stream(chat("call", 30, tools=TOOLS)),
    "tool_whole": chat("call", 30, tools=TOOLS),
    "tool_without_arguments_stream": stream(chat("clock", 30, tools=TOOLS)),
    "tools_two_stream": stream(chat("both", 30, tools=TOOLS)),
    "tool_named_stream": stream(chat("named", 30, tools=TOOLS, tool_choice=NAMED)),
    "tool_required_stream": stream(chat("required", 30, tools=TOOLS, tool_choice="required")),
    "reasoning_stream": stream(chat("reason", 30)),
    "reasoning_whole": chat("reason", 30),
    "reasoning_only_stream": stream(chat("reason", 3, **EXACT)),
    "reasoning_unclosed_stream": stream(chat(WORDS, 4, **EXACT)),
    "reasoning_tool_stream": stream(chat("call", 30, tools=TOOLS)),
    "too_long_stream": stream(chat(MANY, **EXACT)),
    "too_long_completions_whole": completions(MANY, **EXACT),
    "left_stream": stream(chat(WORDS, 100, **EXACT)),
    "left_whole": chat(WORDS, 100, **EXACT),
    "paused_stream": stream(chat(WORDS, 100, **EXACT)),
    "paused_whole": chat(WORDS, 100, **EXACT),
    "sigterm_drained_stream": stream(chat(WORDS, 20, **EXACT)),
    "sigterm_backend_stream": stream(chat(WORDS, 60, **EXACT)),
    "killed_backend_stream": stream(chat(WORDS, 60, **EXACT)),
    "gone_backend_stream": stream(chat(WORDS, **EXACT)),
    "sigterm_stream": stream(chat(WORDS, 200, **EXACT)),
    "sigterm_whole": chat(WORDS, 200, **EXACT),
}


def complete(answer):
    """Reports whether the answer needs no more bytes, by what its head says of its body."""
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    length = re.search(rb"(?im)^content-length: *(\d+)", head)
    if length:
        return len(body) >= int(length[1])
    return re.search(rb"(?im)^transfer-encoding: *chunked", head) is not None and body.endswith(b"\r\n0\r\n\r\n")


def page():
    """Returns the samples of the server's page that count requests and tokens."""
    if not PAGE:
        return {}
    with urllib.request.urlopen(PAGE, timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    wanted = re.compile(r"^[a-z_:]*(request|token|abort|cancel|disconnect)[a-z_]*(_total|_running|_processing|_reqs)[{ ]")
    return dict(line.rsplit(" ", 1) for line in lines if wanted.search(line))


def call(url):
    urllib.request.urlopen(urllib.request.Request(url, b"", method="POST"), timeout=10).close()


def record(name, path, body):
    text = json.dumps({"model": MODEL, "temperature": 0, **body})
    request = (
        f"POST {path} HTTP/1.1\r\nHost: {ADDRESS.netloc}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n"
        f"Accept: text/event-stream, application/json\r\nAccept-Encoding: identity\r\nX-Request-Id: w/0/1\r\n\r\n{text}"
    )
    leaves, paused, told = name.startswith("left"), name.startswith("paused"), name.startswith(("sigterm", "killed"))
    before, logged = page() if leaves or paused else {}, os.path.getsize(LOG) if LOG else 0
    reads, answer, end, stopped_us = [], b"", "kept", None
    connection = socket.create_connection((ADDRESS.hostname, ADDRESS.port))
    connection.settimeout(SILENT)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    begun = time.monotonic_ns()
    passed = lambda: (time.monotonic_ns() - begun) // 1000
    connection.sendall(request.encode())
    whole = not body.get("stream")
    while not complete(answer):
        if (leaves or told or paused) and stopped_us is None and (whole or len(reads) >= 6):
            if whole:
                time.sleep(0.3)
            stopped_us = passed()
            if leaves:
                end = "left"
                break
            if told:
                process = int(BACKEND if "backend" in name else PID)
                os.kill(process, signal.SIGKILL if name.startswith("killed") else signal.SIGTERM)
            else:
                threading.Thread(target=call, args=(PAUSE,)).start()
        try:
            data = connection.recv(1 << 16)
        except (ConnectionResetError, TimeoutError) as error:
            end = "silent" if isinstance(error, TimeoutError) else "reset"
            break
        at = passed()
        if not data:
            end = "closed"
            break
        answer += data
        reads.append({"at_us": at, "bytes": data.decode()})
    end_us = passed()
    connection.close()
    after = {}
    if leaves or told or paused:
        time.sleep(2)
        if leaves or paused:
            after["page"] = {k: [before.get(k), v] for k, v in page().items() if before.get(k) != v}
        if LOG:
            with open(LOG, errors="replace") as log:
                log.seek(logged)
                lines = [line.rstrip() for line in log if not UNTOLD.search(line)]
                after["log"] = [ANSI.sub("", line)[:160] for line in lines if line][-8:]
    if paused:
        call(PAUSE.replace("/pause", "/resume"))
    made = {
        "server": ORIGIN,
        "command": COMMAND,
        "recorded": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "request": request,
        **({"signal_us": stopped_us} if told else {"paused_us": stopped_us} if paused else {}),
        "end": end,
        "end_us": end_us,
        **({"after": after} if after else {}),
    }
    lines = ",\n".join("    " + json.dumps(each) for each in reads)
    with open(f"{FOLDER}/{name}.json", "w") as file:
        file.write(json.dumps(made, indent=2)[:-2] + f',\n  "reads": [\n{lines}\n  ]\n}}\n')
    print(f"{name}: {len(reads)} reads, {len(answer)} bytes, {end} after {end_us} us: {answer[:12].decode()}")


os.makedirs(FOLDER, exist_ok=True)
usual = [name for name in CASES if not name.startswith(("reasoning", "sigterm_drained", "killed", "gone"))]
patterns = os.environ.get("ONLY", "").split() or usual
for case, (where, what) in CASES.items():
    last = case.startswith(("sigterm", "killed"))
    if not any(fnmatch.fnmatch(case, pattern) for pattern in patterns) or (case.startswith("paused") and not PAUSE):
        continue
    if last and not PID or "backend" in case and not BACKEND:
        continue
    if not last and not case.startswith(("left", "paused", "gone")):
        record(case, where, what)  # and again: some servers compile when they first meet a kind of request
    record(case, where, what)
    if last and "backend" not in case:
        break  # the server is gone
