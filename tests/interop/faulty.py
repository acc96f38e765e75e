"""A proxy that answers wrongly: it stands before a server, passes requests on, and spoils some of the answers.

    with Proxy(("127.0.0.1", 8000)) as proxy:
        proxy.spoil = lambda request: "cut" if request.number == 3 else None

A fault is one of FAULTS. The proxy counts the bytes of the bodies that it sends, and keeps the requests.
"""
import collections
import http.client
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULTS = {
    "503": "the server is busy",
    "500": "the server fails",
    "429": "the server has had too many requests",
    "reset": "the connection is reset before the answer",
    "cut": "the connection ends inside the body",
    "short": "the body is complete, and is shorter than its range",
    "slow": "the body comes in small pieces",
    "whole": "a request for a range gets all bytes and status 200",
    "shifted": "a request for a range gets the range after it",
    "other": "the range is right, and Content-Range names another one",
}

Request = collections.namedtuple("Request", "number method path range")


class Proxy:
    """The proxy, on a free port; gone when the block ends."""

    def __init__(self, upstream):
        self.upstream, self.requests, self.bytes, self.spoiled = upstream, [], 0, collections.Counter()
        self.spoil = lambda request: None
        self.lock = threading.Lock()

    def __enter__(self):
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_any(self):
                proxy.answer(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def clear(self):
        with self.lock:
            self.requests, self.bytes = [], 0

    def ask(self, handler, body, changed=None):
        """The answer of the server behind."""
        connection = http.client.HTTPConnection(*self.upstream)
        connection.putrequest(handler.command, handler.path, skip_host=True, skip_accept_encoding=True)
        for name, value in handler.headers.items():
            if name.lower() != "range" or changed is None:
                connection.putheader(name, value)
        if changed:
            connection.putheader("Range", changed)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer, answer.read()

    def answer(self, handler):
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        with self.lock:
            request = Request(len(self.requests), handler.command, handler.path, handler.headers.get("range"))
            self.requests.append(request)
            fault = self.spoil(request)
            if request.range is None and fault in ("short", "whole", "shifted", "other"):
                fault = None
            self.spoiled[fault] += fault is not None
        if fault in ("500", "503", "429"):
            return self.send(handler, int(fault), {}, b"<Error><Code>SlowDown</Code></Error>")
        if fault == "reset":
            return self.reset(handler)
        changed = None
        if fault in ("whole", "shifted"):
            first, last = map(int, request.range.removeprefix("bytes=").split("-"))
            changed = "" if fault == "whole" else f"bytes={last + 1}-{2 * last - first + 1}"
        answer, content = self.ask(handler, body, changed)
        status, headers = answer.status, dict(answer.getheaders())
        if fault == "shifted" and status == 416:
            changed, (answer, content) = None, self.ask(handler, body)
            status, headers = answer.status, dict(answer.getheaders())
        if fault == "other":
            headers = {name: value for name, value in headers.items() if name.lower() != "content-range"}
            headers["Content-Range"] = "bytes 7-8/9"
        if fault == "short":
            content = content[: len(content) // 2]
        self.send(handler, status, headers, content, answer.getheader("content-length"), fault)

    def send(self, handler, status, headers, content, length=None, fault=None):
        handler.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                handler.send_header(name, value)
        is_head = handler.command == "HEAD"
        handler.send_header("Content-Length", length if is_head and length else str(len(content)))
        handler.end_headers()
        if is_head:
            return
        if fault == "cut":
            content = content[: len(content) // 2]
        with self.lock:
            self.bytes += len(content)
        try:
            if fault == "slow":
                for start in range(0, len(content), 1 << 16):
                    handler.wfile.write(content[start:start + (1 << 16)])
                    time.sleep(0.01)
            else:
                handler.wfile.write(content)
        except OSError:
            pass
        if fault == "cut":
            self.reset(handler)

    @staticmethod
    def reset(handler):
        handler.wfile.flush()
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.close_connection = True
        handler.connection.close()
