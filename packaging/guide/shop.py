#!/usr/bin/env python3
"""shop.py SOCKET LIBRARY PORT: a shop of the guide. It takes orders over HTTP, one thread each, writes them to PostgreSQL, and publishes
OpenTelemetry's process and thread context (OTEP 4719, 4947): the trace that the header traceparent of an order names. LIBRARY has the
thread-local variable, and context_set(), which sets it. Six clients order; one of them always the same item.
"""
import ctypes
import http.client
import http.server
import mmap
import os
import random
import socket
import struct
import sys
import threading
import time

server_socket, library, port = sys.argv[1], ctypes.CDLL(sys.argv[2]), int(sys.argv[3])
library.context_set.argtypes = [ctypes.c_void_p]
kept = threading.local()


def field(number, payload):
    """A field of a protobuf message with bytes."""
    return bytes([number << 3 | 2, len(payload)]) + payload


def attribute(number, name, value):
    return field(number, field(1, name) + field(2, value))


def text(value):
    return field(1, value)


def process_publish():
    keys = field(5, b"".join(field(1, field(1, name)) for name in (b"http.route", b"item")))
    resource = attribute(1, b"service.name", text(b"shop")) + attribute(1, b"service.instance.id", text(b"shop-1"))
    payload = field(1, resource) + attribute(2, b"threadlocal.schema_version", text(b"tls_v1")) + \
        attribute(2, b"threadlocal.attribute_key_map", keys)
    file = os.memfd_create("OTEL_CTX")
    os.ftruncate(file, 4096)
    header = mmap.mmap(file, 4096, mmap.MAP_PRIVATE)
    stays = ctypes.create_string_buffer(payload, len(payload))
    header[:32] = struct.pack("<8sIIQQ", b"OTEL_CTX", 2, len(payload), time.clock_gettime_ns(time.CLOCK_BOOTTIME), ctypes.addressof(stays))
    return header, stays


def thread_publish(trace, span, attributes):
    words = b"".join(bytes([key, len(value)]) + value for key, value in enumerate(attributes))
    kept.record = ctypes.create_string_buffer(bytes.fromhex(trace + span) + struct.pack("<BBH", 1, 1, len(words)) + words)
    library.context_set(kept.record)


class Database:
    """A session of PostgreSQL: its protocol 3 with simple queries."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(server_socket)
        self.file = self.socket.makefile("rb")
        words = b"user\0postgres\0database\0postgres\0application_name\0shop\0\0"
        self.socket.sendall(struct.pack("!II", len(words) + 8, 196608) + words)
        self.await_ready()

    def await_ready(self):
        kind = b""
        while kind != b"Z":
            kind, = struct.unpack("c", self.file.read(1))
            self.file.read(struct.unpack("!I", self.file.read(4))[0] - 4)

    def run(self, statement):
        self.socket.sendall(b"Q" + struct.pack("!I", len(statement) + 5) + statement.encode() + b"\0")
        self.await_ready()


class Order(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_what):
        pass

    def do_POST(self):
        _, trace, span, _ = self.headers["traceparent"].split("-")
        item = int(self.path.rpartition("/")[2])
        thread_publish(trace, span, (b"/order/{item}", b"%d" % item))
        if not hasattr(kept, "database"):
            kept.database = Database()
        kept.database.run("update stock set n = n - 1 where item = %d" % item)
        library.context_set(None)
        self.send_response(204)
        self.end_headers()


def client(item):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while True:
        headers = {"traceparent": "00-%032x-%016x-01" % (random.getrandbits(128), random.getrandbits(64))}
        connection.request("POST", "/order/%d" % (item or random.randrange(1000, 2000)), headers=headers)
        connection.getresponse().read()
        time.sleep(0.02)


if os.fork():
    published = process_publish()
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Order).serve_forever()
for number in range(6):
    time.sleep(0.2)
    threading.Thread(target=client, args=(7 if number == 5 else 0,)).start()
