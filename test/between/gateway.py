"""A small gateway: an ASGI application that forwards each request to ENGINE with httpx and streams the answer."""

import os

import httpx

engine = httpx.AsyncClient(base_url=os.environ["ENGINE"], timeout=None, limits=httpx.Limits(max_connections=None))

# Headers of one connection alone (RFC 9110, 7.6.1), and those that httpx or the server write themselves.
OWN = {b"connection", b"keep-alive", b"transfer-encoding", b"te", b"trailer", b"upgrade", b"host", b"date", b"server"}


def others(headers):
    return [(name.lower(), value) for name, value in headers if name.lower() not in OWN]


async def body(receive):
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return
        more = message.get("more_body", False)
        yield message.get("body", b"")


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    content = b"".join([part async for part in body(receive)])
    request = engine.build_request(scope["method"], scope["path"], headers=others(scope["headers"]), content=content)
    answer = await engine.send(request, stream=True)
    try:
        await send({"type": "http.response.start", "status": answer.status_code, "headers": others(answer.headers.raw)})
        async for part in answer.aiter_raw():
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    finally:
        await answer.aclose()
