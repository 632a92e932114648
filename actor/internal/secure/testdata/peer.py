#!/usr/bin/env python3
"""A peer for PSK mode, written from docs/security-wire.md: bytes in, bytes out, no sockets.

    peer.py vectors DIR    writes DIR/noise.json, psk.json and records.json, the known answers of the tests
    peer.py talk           is a client or a server: a line of JSON each way (talk, below)

It needs Debian's python3-cryptography. It is for tests: it is not constant in time, and it overwrites nothing.
"""
import hashlib
import hmac
import json
import os
import struct
import sys

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

TAG = 16
SEGMENT = 1 << 20


# HMAC, HKDF and labels.

def mac(key, data, name="sha256"):
    return hmac.new(key, data, name).digest()


def hkdf_expand(secret, info, n, name):
    out, block, i = b"", b"", 1
    while len(out) < n:
        block = mac(secret, block + info + bytes([i]), name)
        out, i = out + block, i + 1
    return out[:n]


def expand(secret, label, context, n, name="sha256"):
    text = b"rdmactor " + label.encode()
    return hkdf_expand(secret, struct.pack(">HB", n, len(text)) + text + bytes([len(context)]) + context, n, name)


class Suite:
    def __init__(self, aead, key_len=32, hash_name="sha256", noise=None):
        self.aead, self.key_len, self.hash_name, self.name = aead, key_len, hash_name, noise

    def noise_nonce(self, n):
        return bytes(4) + struct.pack("<Q" if self.aead is ChaCha20Poly1305 else ">Q", n)

    def expand(self, secret, label, context, n):
        return expand(secret, label, context, n, self.hash_name)

    @property
    def hash_len(self):
        return hashlib.new(self.hash_name).digest_size


SUITES = {
    "aes": Suite(AESGCM, noise="Noise_NNpsk2_25519_AESGCM_SHA256"),
    "chacha": Suite(ChaCha20Poly1305, noise="Noise_NNpsk2_25519_ChaChaPoly_SHA256"),
    "tls-aes-128": Suite(AESGCM, key_len=16),
    "tls-aes-256": Suite(AESGCM, hash_name="sha384"),
}
PSK_SUITES = ("aes", "chacha")


# Noise, revision 34, as far as NNpsk2 needs it.

def public(private):
    return private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


class Noise:
    def __init__(self, suite, prologue, psk, private):
        self.suite, self.psk, self.e = suite, psk, private
        name = suite.name.encode()
        self.h = name.ljust(32, b"\0") if len(name) <= 32 else hashlib.sha256(name).digest()
        self.ck = self.h
        self.mix_hash(prologue)

    def mix_hash(self, data):
        self.h = hashlib.sha256(self.h + data).digest()

    def hkdf(self, material, n):
        temp, out, last = mac(self.ck, material), [], b""
        for i in range(1, n + 1):
            last = mac(temp, last + bytes([i]))
            out.append(last)
        return out

    def mix_key(self, material):
        self.ck, self.k = self.hkdf(material, 2)
        self.n = 0

    def mix_key_and_hash(self, material):
        self.ck, mixed, self.k = self.hkdf(material, 3)
        self.mix_hash(mixed)
        self.n = 0

    def encrypt_and_hash(self, payload):
        sealed = self.suite.aead(self.k).encrypt(self.suite.noise_nonce(self.n), payload, self.h)
        self.n += 1
        self.mix_hash(sealed)
        return sealed

    def decrypt_and_hash(self, sealed):
        payload = self.suite.aead(self.k).decrypt(self.suite.noise_nonce(self.n), sealed, self.h)
        self.n += 1
        self.mix_hash(sealed)
        return payload

    def ephemeral(self, e):
        self.mix_hash(e)
        self.mix_key(e)

    def first(self, e, payload=b""):
        self.ephemeral(e)
        return self.encrypt_and_hash(payload)

    def exchange(self, peer):
        self.mix_key(self.e.exchange(X25519PublicKey.from_public_bytes(peer)))  # raises if it is zeros
        self.mix_key_and_hash(self.psk)

    def write_second(self, peer, payload):
        self.ephemeral(public(self.e))
        self.exchange(peer)
        return self.encrypt_and_hash(payload)

    def read_second(self, e, sealed):
        self.ephemeral(e)
        self.exchange(e)
        return self.decrypt_and_hash(sealed)

    def split(self):
        return self.hkdf(b"", 2)


# PSK mode.

def address(a):
    import ipaddress
    a = ipaddress.ip_address(a)
    return a.packed if a.version == 6 else bytes(10) + b"\xff\xff" + a.packed


def binding(label, device, client, server, port, hint):
    if client is None:
        return label + bytes([device, 0]) + bytes(34) + struct.pack(">I", hint)
    return label + bytes([device, 1]) + address(client) + address(server) + struct.pack(">HI", port, hint)


def key_id(key, identity):
    return expand(key, "psk id", identity, 8)


class PSK:
    """One side's handshake: request and finish of a client, answer of a server."""

    def __init__(self, suite, identity, key, route, private):
        """route is what is bound, but for the label and the hint."""
        self.suite, self.id, self.route, self.private = suite, key_id(key, identity), route, private
        self.psk = expand(key, "psk", identity, 32)

    def begin(self, hello, hint):
        bound = binding(b"rdmactor-psk-1", *self.route, hint)
        self.noise = Noise(self.suite, bound + hello + self.id, self.psk, self.private)

    def request(self, hello, hint):
        self.begin(hello, hint)
        self.noise.first(public(self.private))
        return hello + struct.pack(">I", hint) + public(self.private) + self.id

    def finish(self, reply):
        if len(reply) != 72:
            raise ValueError("a reply of %d bytes" % len(reply))
        if self.noise.read_second(reply[12:44], reply[44:]) != reply[:12]:
            raise ValueError("the reply's hello was changed")
        return self.secrets()

    def answer(self, request, hello):
        if len(request) != 56 or request[48:] != self.id:
            raise ValueError("not a request of ours")
        self.begin(request[:12], int.from_bytes(request[12:16], "big"))
        self.noise.first(request[16:48])
        sealed = self.noise.write_second(request[16:48], hello)
        return hello + public(self.private) + sealed

    def secrets(self):
        k1, k2 = self.noise.split()
        return expand(k1, "traffic", self.noise.h, 32), expand(k2, "traffic", self.noise.h, 32)


# Records.

class Records:
    """One direction."""

    def __init__(self, suite, secret):
        self.suite = suite
        self.use(secret)

    def use(self, secret):
        self.secret, self.number = secret, 0
        self.key = self.suite.expand(secret, "key", b"", self.suite.key_len)
        self.iv = self.suite.expand(secret, "iv", b"", 12)

    def nonce(self):
        low = int.from_bytes(self.iv[4:], "big") ^ self.number
        self.number += 1
        return self.iv[:4] + low.to_bytes(8, "big")

    def seal(self, plaintext):
        return self.suite.aead(self.key).encrypt(self.nonce(), plaintext, None)

    def open(self, sealed):
        return self.suite.aead(self.key).decrypt(self.nonce(), sealed, None)

    def update(self):
        self.use(self.suite.expand(self.secret, "update", b"", len(self.secret)))


# Large messages.

class Large:
    def __init__(self, suite, first_secret):
        self.suite, self.secret = suite, suite.expand(first_secret, "large", b"", suite.hash_len)

    def aead(self, number):
        return self.suite.aead(self.suite.expand(self.secret, "message", struct.pack(">Q", number), self.suite.key_len))

    @staticmethod
    def nonces(n):
        count = -(-n // SEGMENT)
        return [bytes(7) + struct.pack(">IB", i, i == count - 1) for i in range(count)]

    def seal(self, number, message):
        aead, body, tags = self.aead(number), b"", b""
        for i, nonce in enumerate(self.nonces(len(message))):
            sealed = aead.encrypt(nonce, message[i * SEGMENT:(i + 1) * SEGMENT], None)
            body, tags = body + sealed[:-TAG], tags + sealed[-TAG:]
        return body + tags

    def open(self, number, n, memory):
        aead, message = self.aead(number), b""
        for i, nonce in enumerate(self.nonces(n)):
            segment = memory[i * SEGMENT:min(n, (i + 1) * SEGMENT)]
            message += aead.decrypt(nonce, segment + memory[n + i * TAG:n + (i + 1) * TAG], None)
        return message


# Known answers.

def private(seed):
    return X25519PrivateKey.from_private_bytes(bytes([seed]) * 32)


def noise_vector(suite):
    psk, prologue = bytes(range(100, 132)), b"a prologue"
    payloads = [b"", b"the reply's payload", b"from the initiator", b"from the responder", b"", b"again"]
    i, r = (Noise(suite, prologue, psk, private(seed)) for seed in (11, 12))
    one = i.first(public(i.e), payloads[0])
    assert r.first(public(i.e), payloads[0]) == one
    two = r.write_second(public(i.e), payloads[1])
    assert i.read_second(public(r.e), two) == payloads[1] and i.h == r.h
    messages = [public(i.e) + one, public(r.e) + two]
    keys = i.split()
    for n, payload in enumerate(payloads[2:]):
        messages.append(suite.aead(keys[n % 2]).encrypt(suite.noise_nonce(n // 2), payload, None))
    return {
        "protocol_name": suite.name, "init_prologue": prologue.hex(), "init_psks": [psk.hex()],
        "init_ephemeral": (bytes([11]) * 32).hex(), "resp_ephemeral": (bytes([12]) * 32).hex(), "handshake_hash": i.h.hex(),
        "messages": [{"payload": p.hex(), "ciphertext": m.hex()} for p, m in zip(payloads, messages)],
    }


def pattern(n):
    """A long message that other programs make the same way."""
    return bytes((i + (i >> 8) + (i >> 16)) & 255 for i in range(n))


def psk_vector(name, bound_to, hint):
    suite, identity, key = SUITES[name], "node-1/é".encode(), bytes(range(200, 232))
    features = bytes([5 if name == "chacha" else 1])
    request_hello = bytes.fromhex("7eda032c0020") + features + bytes.fromhex("4000100000")
    reply_hello = bytes.fromhex("7eda033c0010") + features + bytes.fromhex("1001000000")
    client, server = (PSK(suite, identity, key, (1, *bound_to), private(seed)) for seed in (21, 22))
    request = client.request(request_hello, hint)
    reply = server.answer(request, reply_hello)
    secrets = client.finish(reply)
    assert server.secrets() == secrets
    return {
        "suite": name, "identity": identity.hex(), "key": key.hex(), "device": 1,
        "client": bound_to[0] or "", "server": bound_to[1] or "", "port": bound_to[2], "hint": hint,
        "client_ephemeral": (bytes([21]) * 32).hex(), "server_ephemeral": (bytes([22]) * 32).hex(),
        "request": request.hex(), "reply": reply.hex(), "client_secret": secrets[0].hex(), "server_secret": secrets[1].hex(),
    }


def records_vector(name):
    suite = SUITES[name]
    secret = bytes(range(50, 50 + suite.hash_len))
    records, large, both = Records(suite, secret), Large(suite, secret), 2 * SEGMENT + 7
    sealed = [{"plaintext": p.hex(), "sealed": records.seal(p).hex()} for p in (b"", b"x", pattern(100))]
    records.update()
    memory = large.seal(4, pattern(both))
    assert large.open(4, both, memory) == pattern(both)
    return {
        "suite": name, "secret": secret.hex(), "records": sealed, "updated": records.seal(b"after an update").hex(),
        "large": {"number": 3, "message": b"large".hex(), "sealed": large.seal(3, b"large").hex()},
        "pattern": {"number": 4, "length": both, "sha256": hashlib.sha256(memory).hexdigest()},
    }


def write_vectors(folder):
    routes = (
        (("192.0.2.1", "192.0.2.2", 7471), 0), (("2001:db8::1", "2001:db8::2", 65535), 0xFEEDBEE5), ((None, None, 0), 1),
    )
    for name, vectors in (
        ("noise.json", [noise_vector(SUITES[s]) for s in PSK_SUITES]),
        ("psk.json", [psk_vector(s, *r) for s in PSK_SUITES for r in routes]),
        ("records.json", [records_vector(s) for s in SUITES]),
    ):
        with open(os.path.join(folder, name), "w") as f:
            json.dump({"vectors": vectors}, f, indent=1)
            f.write("\n")


# A conversation: lines of JSON on the standard input and output, bytes in hexadecimal.

def say(**fields):
    print(json.dumps({k: v.hex() if isinstance(v, bytes) else v for k, v in fields.items()}), flush=True)


def hear():
    """The next line, or None at the end."""
    line = sys.stdin.readline()
    names = ("key", "identity", "hello", "reply", "request", "sealed")
    return {k: bytes.fromhex(v) if k in names else v for k, v in json.loads(line).items()} if line else None


def talk():
    """The first line says who to be. After the handshake each record, and each large message, comes back reversed."""
    start = hear()
    suite = SUITES[start["suite"]]
    route = start["device"], start["client"] or None, start["server"], start["port"]
    psk = PSK(suite, start["identity"], start["key"], route, X25519PrivateKey.generate())
    if start["role"] == "client":
        say(request=psk.request(start["hello"], start["hint"]))
        ours, theirs = psk.finish(hear()["reply"])
    else:
        say(reply=psk.answer(start["request"], start["hello"]))
        theirs, ours = psk.secrets()
    out, into = Records(suite, ours), Records(suite, theirs)
    large_out, large_into = Large(suite, ours), Large(suite, theirs)
    if start["role"] == "client":
        say(sealed=out.seal(b"first"))
    for line in iter(hear, None):
        if "number" in line:
            message = large_into.open(line["number"], line["length"], line["sealed"])
            say(sealed=large_out.seal(line["number"], message[::-1]))
        elif "update" in line:
            into.update()
            out.update()
        else:
            say(sealed=out.seal(into.open(line["sealed"])[::-1]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["vectors"]:
        write_vectors(sys.argv[2])
    elif sys.argv[1:] == ["talk"]:
        talk()
    else:
        sys.exit(__doc__)
