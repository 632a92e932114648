"""A peer of PSK mode, written from docs/wire.md, docs/security-wire.md and RFCs.

It knows nothing of the Go code. It talks iWARP over TCP, as client and as listener. Commands come
as lines of JSON on its standard input, one answer each goes to its standard output. A connection
is named by "conn". An answer with "error" says why a command failed, and never ends the process.
"""

import hashlib
import json
import random
import socket
import struct
import sys

import iwarp
import secure

DATA, CREDIT, OFFER, GOODBYE, PROBE, ANSWER, UPDATE, REQUEST, ACCEPT, REJECT = range(1, 11)
RECEIVES = 12
MAGIC, VERSION, HELLO = 0x7EDA, 4, 12
ACK_NOW, RESIZED = 1, 2


def pattern(n):
    return (bytes(range(251)) * (n // 251 + 1))[:n]


def hello(c, behind):
    features = secure.FEATURE_PSK | (secure.FEATURE_CHACHA if c.get("chacha") else 0)
    return struct.pack(
        ">HBBHBBI",
        MAGIC,
        c.get("version", VERSION),
        behind,
        c.get("credits", 16),
        c.get("features", features),
        c.get("receive", 64),
        c.get("largest", 64 << 20),
    )


def flipped(b, c, what):
    """The bytes, with one bit changed if the command says so."""
    if c.get("flip") != what:
        return b
    b = bytearray(b)
    b[c["at"]] ^= 1 << c["bit"]
    return bytes(b)


class Conn:
    """A connection, from its first message on."""

    def __init__(self, pair, window):
        self.pair = pair
        self.window, self.credits = window, 0
        self.seals, self.opens = None, None
        self.sent, self.consumed_by_peer = 0, 0  # messages, modulo nothing: tests are short
        self.got, self.consumed, self.stated = 0, 0, 0
        self.offers, self.pulled_by_peer, self.pulled, self.pulled_stated = 0, 0, 0, 0
        self.ack_now = False
        self.ended, self.said_goodbye, self.probing = "", False, False
        self.updates = 0
        self.messages = []  # that arrived and were not consumed
        self.answers, self.offers_taken = 0, 0
        self.resized, self.resized_known = False, True

    def header(self, kind, flags=0):
        if kind in (REQUEST, ACCEPT, REJECT):
            return struct.pack(">BBHI", kind, 0, 0, 0)
        self.stated, self.pulled_stated = self.consumed, self.pulled
        return struct.pack(">BBHI", kind, flags, self.pulled & 0xFFFF, self.consumed & 0xFFFFFFFF)

    def put(self, kind, body=b"", flags=0):
        self.pair.send(self.seals.seal(self.header(kind, flags) + body))

    def take(self):
        """Takes one record in that is not one of the handshake's."""
        plain = self.opens.open(self.pair.receive())
        kind, flags, pulled, consumed = struct.unpack(">BBHI", plain[:8])
        body = plain[8:]
        if kind in (REQUEST, ACCEPT, REJECT):
            raise secure.Refused("type %d" % kind)
        if self.ended:
            raise secure.Refused("a message behind a goodbye")
        self.pulled_by_peer, self.consumed_by_peer = pulled, consumed
        if self.pulled_by_peer > self.offers or self.consumed_by_peer > self.sent:
            raise secure.Refused("a count that is larger than what was sent")
        self.ack_now = self.ack_now or bool(flags & ACK_NOW)
        if bool(flags & RESIZED) == self.resized:
            self.resized_known = True
        elif self.resized_known:
            raise secure.Refused("an answer to no change of receives")
        if kind == DATA:
            self.got += 1
            self.messages.append(body)
        elif kind == OFFER:
            self.got += 1
            self.offers_taken += 1
            self.messages.append(self.fetch(body))
        elif kind == GOODBYE:
            self.ended = "goodbye"
        elif kind == PROBE:
            self.put(ANSWER)
        elif kind == ANSWER:
            self.answers += 1
        elif kind == UPDATE:
            self.opens.update()
            self.updates += 1
        elif kind != CREDIT:
            raise secure.Refused("type %d" % kind)
        if kind not in (DATA, OFFER) and body:
            raise secure.Refused("type %d with a message" % kind)
        if self.got - self.consumed > self.window:
            raise secure.Refused("a message without credit")
        self.state()

    def fetch(self, body):
        n, key, where, number = struct.unpack(">IIQQ", body)
        sealed = self.pair.read(key, where, secure.sealed_length(n))
        self.pulled += 1
        return self.opens.open_large(sealed, n, number)

    def state(self):
        """Sends a credit update if one is due."""
        if self.ended or self.said_goodbye:
            return
        new, read = self.consumed - self.stated, self.pulled - self.pulled_stated
        if self.ack_now and not self.messages:
            self.ack_now = False
            self.put(CREDIT)
        elif 2 * new >= self.window or read:
            self.put(CREDIT)

    def receive(self):
        while not self.messages:
            if self.ended:
                raise iwarp.Ended(self.ended)
            self.take()
        b = self.messages.pop(0)
        self.consumed += 1
        self.state()
        return b

    def room(self):
        while self.sent - self.consumed_by_peer >= self.credits:
            self.take()

    def send(self, b):
        self.room()
        self.sent += 1
        self.put(DATA, b)

    def offer(self, b, flip=None, step=1):
        self.room()
        sealed, number = self.seals.seal_large(b)
        self.seals.message += step - 1  # of the next one
        if flip is not None:
            sealed = sealed[:flip] + bytes([sealed[flip] ^ 1]) + sealed[flip + 1 :]
        self.sent, self.offers = self.sent + 1, self.offers + 1
        key, where = 0x1000 + self.offers, 0x10000 * self.offers
        self.pair.memory[key] = where, sealed
        self.put(OFFER, struct.pack(">IIQQ", len(b), key, where, number))

    def settle(self):
        """Waits until the peer has consumed everything."""
        if self.consumed_by_peer < self.sent:
            self.put(CREDIT, flags=ACK_NOW)
        while self.consumed_by_peer < self.sent or self.pulled_by_peer < self.offers:
            self.take()

    def resize(self, start, size):
        self.resized, self.resized_known = not self.resized, False
        self.put(RECEIVES, struct.pack(">II", start, size))

    def update(self):
        self.put(UPDATE)
        self.seals.update()

    def goodbye(self):
        self.put(GOODBYE)
        self.said_goodbye = True
        self.pair.disconnect()
        self.until_end()

    def until_end(self):
        try:
            while True:
                self.take()
        except iwarp.Ended as e:
            self.ended = self.ended or "lost: %s" % e
        self.pair.close()


def first(c, conn, kind, what):
    """Sends the first record of this side."""
    private = bytes.fromhex(c.get("private", ""))
    sealed = conn.seals.seal(conn.header(kind) + private)
    conn.pair.send(flipped(sealed, c, what))
    return sealed


def secrets(c, client, server, port, hint):
    who = secure.Credential(c["identity"].encode(), bytes.fromhex(c["key"]))
    return who, secure.binding(client, server, port, hint, addresses=not c.get("no_addresses"))


class Peer:
    """The connections and the listeners, by name."""

    def __init__(self):
        self.conns, self.listeners = {}, {}

    def dial(self, c):
        """Connects, and waits for the owner's answer."""
        sock = socket.create_connection((c["host"], c["port"]), 20)
        pair = iwarp.Pair(sock, c.get("timeout", 20))
        who, bound = secrets(c, sock.getsockname()[0], c["host"], c["port"], struct.pack(">I", c.get("hint", 0)))
        conn = self.conns[c["conn"]] = Conn(pair, c.get("credits", 16))
        shake = secure.Client(bool(c.get("chacha")), who, bound, hello(c, 44))
        reply, rejected = pair.connect(flipped(shake.private, c, "request"))
        out = {"request": shake.private.hex(), "reply": reply.hex()}
        if rejected:
            return out | {"rejected": True}
        conn.seals, conn.opens = shake.finish(reply)
        conn.credits = struct.unpack(">H", reply[4:6])[0]
        if c.get("half"):
            return out
        out["first"] = first(c, conn, REQUEST, "first").hex()
        plain = conn.opens.open(pair.receive())
        if plain[0] not in (ACCEPT, REJECT) or any(plain[1:8]):
            raise secure.Refused("the first message is %s" % plain[:8].hex())
        return out | {"type": plain[0], "private": plain[8:].hex()}

    def raw_dial(self, c):
        """Connects with private data that are given, and gives those of the answer."""
        pair = iwarp.Pair(socket.create_connection((c["host"], c["port"]), 20), c.get("timeout", 20))
        self.conns[c["conn"]] = Conn(pair, 16)
        reply, rejected = pair.connect(bytes.fromhex(c["request"]))
        return {"reply": reply.hex(), "rejected": rejected}

    def listen(self, c):
        sock = socket.create_server((c["host"], 0))
        sock.settimeout(20)
        self.listeners[c["conn"]] = sock
        return {"port": sock.getsockname()[1]}

    def serve(self, c):
        """Takes one connection of the listener of that name, and answers it."""
        sock, peer = self.listeners[c["conn"]].accept()
        pair = iwarp.Pair(sock, c.get("timeout", 20))
        conn = self.conns[c["conn"]] = Conn(pair, c.get("credits", 16))
        request = pair.request()
        out = {"request": request.hex()}
        if "refuse" in c:
            pair.answer(hello(c, 1) + bytes([c["refuse"]]), reject=True)
            return out
        c["chacha"] = bool(request[6] & secure.FEATURE_CHACHA)  # the client chooses
        who, bound = secrets(c, peer[0], *sock.getsockname()[:2], request[12:16])
        shake = secure.Server(c["chacha"], who, bound, request, hello(c, 60))
        reply = bytes.fromhex(c["replay"]) if "replay" in c else flipped(shake.private, c, "reply")
        pair.answer(reply)
        out["reply"] = reply.hex()
        conn.seals, conn.opens = shake.seals, shake.opens
        conn.credits = struct.unpack(">H", request[4:6])[0]
        plain = conn.opens.open(pair.receive())
        if plain[:8] != bytes([REQUEST]) + bytes(7):
            raise secure.Refused("the first message is %s" % plain[:8].hex())
        first(c, conn, REJECT if c.get("reject") else ACCEPT, "accept")
        return out | {"private": plain[8:].hex()}

    def send(self, c):
        for _ in range(c.get("count", 1)):
            self.conns[c["conn"]].send(bytes.fromhex(c["data"]))

    def receive(self, c):
        return {"data": self.conns[c["conn"]].receive().hex()}

    def offer(self, c):
        conn = self.conns[c["conn"]]
        conn.offer(pattern(c["size"]), c.get("flip"), c.get("step", 1))
        conn.settle()

    def receive_large(self, c):
        b = self.conns[c["conn"]].receive()
        return {"size": len(b), "same": b == pattern(len(b))}

    def settle(self, c):
        self.conns[c["conn"]].settle()

    def probe(self, c):
        conn = self.conns[c["conn"]]
        conn.put(PROBE)
        n = conn.answers
        while conn.answers == n:
            conn.take()

    def resize(self, c):
        """Says that its receives hold another size, and waits until that is known."""
        conn = self.conns[c["conn"]]
        conn.resize(c["from"], c["size"])
        while not conn.resized_known:
            conn.take()

    def offers(self, c):
        return {"updates": self.conns[c["conn"]].offers_taken}

    def update(self, c):
        self.conns[c["conn"]].update()

    def updates(self, c):
        return {"updates": self.conns[c["conn"]].updates}

    def goodbye(self, c):
        conn = self.conns[c["conn"]]
        conn.goodbye()
        return {"ended": conn.ended}

    def end(self, c):
        """Waits for the end."""
        conn = self.conns[c["conn"]]
        conn.until_end()
        return {"ended": conn.ended}

    def seal(self, c):
        """Seals a message and does not send it."""
        conn = self.conns[c["conn"]]
        conn.sent += 1
        return {"sealed": conn.seals.seal(conn.header(DATA) + bytes.fromhex(c["data"])).hex()}

    def raw(self, c):
        """Sends bytes as they are."""
        self.conns[c["conn"]].pair.send(bytes.fromhex(c["data"]))

    def put(self, c):
        """Sends a record of any type."""
        self.conns[c["conn"]].put(c["type"], bytes.fromhex(c.get("data", "")), c.get("flags", 0))

    def reflect(self, c):
        """Sends the peer's next record back as it came."""
        pair = self.conns[c["conn"]].pair
        pair.send(pair.receive())

    def drained(self, c):
        """Waits until the connection is over, whatever comes; says how many Sends came."""
        n, pair = 0, self.conns[c["conn"]].pair
        try:
            while True:
                pair.receive()
                n += 1
        except iwarp.Ended:
            pair.close()
            return {"sends": n}

    def garbage(self, c):
        """Connects many times with what is nobody's request."""
        who, rand = secure.Credential(c["identity"].encode(), bytes.fromhex(c["key"])), random.Random(1)
        left = []
        for i in range(c["count"]):
            sock = socket.create_connection((c["host"], c["port"]), 20)
            start = hello(c, 44)
            private = [
                rand.randbytes(rand.randrange(200)),
                start + rand.randbytes(44),
                start + rand.randbytes(36) + who.id,
                start + bytes(36) + who.id,
                start[:6] + rand.randbytes(6) + rand.randbytes(36) + who.id,
            ][i % 5]
            body = struct.pack(">HH", 8, 8) + private
            frame = iwarp.REQUEST + struct.pack(">BBH", iwarp.ENHANCED, 2, len(body)) + body
            try:
                sock.sendall([frame, frame + rand.randbytes(100), rand.randbytes(60)][i % 3])
            except ConnectionError:
                pass
            left.append(sock)
            if i % 2:  # every second one stays for a while
                left.pop().close()
            if len(left) > 100:
                left.pop(0).close()
        for sock in left:
            sock.close()

    def close(self, c):
        self.conns.pop(c["conn"]).pair.close()


def main():
    peer = Peer()
    for line in sys.stdin:
        c = json.loads(line)
        try:
            out = getattr(peer, c["do"])(c) or {}
        except (iwarp.Ended, secure.Refused, OSError) as e:
            out = {"error": "%s: %s" % (type(e).__name__, e)}
        print(json.dumps(out), flush=True)


main()
