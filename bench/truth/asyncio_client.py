#!/usr/bin/env python3
"""A load generator as one writes it with Python's asyncio, standard library alone: a task a stream, its lines, and the time
after each. Same plan, flags and outputs as bench/nethttp."""

import argparse
import asyncio
import collections
import json
import re
import resource
import ssl
import sys
import time
import urllib.parse

TAIL = 3  # data lines after the content: finish reason, usage, [DONE]


def flags():
    """The command line, in Go's spelling of durations."""
    p = argparse.ArgumentParser()
    p.add_argument("--url", required=True)
    p.add_argument("--streams", type=int, default=100)
    p.add_argument("--requests", type=int, default=1000)
    p.add_argument("--spacing", type=seconds, default=0.01)
    p.add_argument("--tokens", type=int, default=100)
    p.add_argument("--body-bytes", type=int, default=100)
    p.add_argument("--out", default="")
    p.add_argument("--ca", default="")
    return p.parse_args()


def seconds(text):
    """A duration such as 1.5ms or 2s."""
    units = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
    parts = re.findall(r"([0-9.]+)(h|ms|m|s|us|µs|ns)", text)
    if "".join(n + u for n, u in parts) != text or not text:
        raise argparse.ArgumentTypeError(f"want a duration such as 10ms, got {text}")
    return sum(float(n) * units[u] for n, u in parts)


class Client:
    """Connections that are kept, the last used first."""

    def __init__(self, plan):
        self.plan = plan
        url = urllib.parse.urlsplit(plan.url)
        self.host, self.port = url.hostname, url.port
        self.tls = ssl.create_default_context(cafile=plan.ca or None) if url.scheme == "https" else None
        text = json.dumps(
            {
                "model": "stamp",
                "messages": [{"role": "user", "content": ("word " * (plan.body_bytes // 5 + 1))[: plan.body_bytes]}],
                "max_tokens": plan.tokens,
                "stream": True,
                "stream_options": {"include_usage": True},
            },
            separators=(",", ":"),
        )
        self.body = text.encode()
        self.kept = collections.deque()

    async def ask(self, request_id, seen):
        """Sends a request and notes when each chunk of its answer came."""
        now = time.time_ns
        start = now()
        if self.kept:
            reader, writer = self.kept.pop()
        else:
            reader, writer = await asyncio.open_connection(self.host, self.port, ssl=self.tls)
        writer.write(
            f"POST /v1/chat/completions HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(self.body)}\r\nX-Request-Id: {request_id}\r\n\r\n".encode()
            + self.body
        )
        status = await reader.readline()
        if b" 200 " not in status:
            raise RuntimeError(f"{request_id}: want 200, got {status!r}")
        chunks, data = [], 0
        while True:
            line = await reader.readline()
            if line.startswith(b"data:"):
                data += 1
                if data <= self.plan.tokens:
                    chunks.append(now())
            elif line == b"0\r\n":
                await reader.readline()
                break
            elif not line:
                raise RuntimeError(f"{request_id}: the connection ended")
        if data != self.plan.tokens + TAIL:
            raise RuntimeError(f"{request_id}: want {self.plan.tokens + TAIL} data lines, got {data}")
        self.kept.append((reader, writer))
        seen.append({"id": request_id, "start": start, "chunks": chunks})


async def play(plan):
    """Sends each request at its instant and waits for all of them."""
    client, seen, loop = Client(plan), [], asyncio.get_running_loop()
    start = loop.time()
    async with asyncio.TaskGroup() as streams:
        for i in range(plan.requests):
            await asyncio.sleep(max(0, start + i * plan.spacing - loop.time()))
            streams.create_task(client.ask(f"asyncio/0/{i}", seen))
    for _, writer in client.kept:
        writer.close()
    return seen


def used():
    """Seconds of processor time so far."""
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def main():
    plan = flags()
    began, cpu = time.monotonic(), used()
    seen = asyncio.run(play(plan))
    with open("/proc/self/status", encoding="ascii") as f:
        peak = next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM:"))
    spent = {
        "tokens": sum(len(s["chunks"]) for s in seen),
        "requests": len(seen),
        "cpu_seconds": used() - cpu,
        "wall_seconds": time.monotonic() - began,
        "rss_peak_bytes": peak,
    }
    json.dump(spent, sys.stdout)
    print()
    if plan.out:
        with open(plan.out, "w", encoding="ascii") as f:
            for s in seen:
                f.write(json.dumps(s) + "\n")


if __name__ == "__main__":
    main()
