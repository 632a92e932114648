"""PSK mode as docs/security-wire.md has it: the handshake, records, sealed large messages."""

import hashlib
import hmac
import ipaddress
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SEGMENT = 1 << 20
FEATURE_PSK, FEATURE_TLS, FEATURE_CHACHA = 1, 2, 4


class Refused(Exception):
    """The handshake, or a record, is not what the other side must have sent."""


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def expand(secret, label, context, n):
    """HKDF-Expand-Label of RFC 8446 with another prefix, over HKDF-Expand of RFC 5869."""
    text = b"rdmactor " + label
    info = struct.pack(">HB", n, len(text)) + text + bytes([len(context)]) + context
    out, block, i = b"", b"", 0
    while len(out) < n:
        i += 1
        block = mac(secret, block + info + bytes([i]))
        out += block
    return out[:n]


def hkdf(chaining, material, outputs):
    """Noise's HKDF."""
    temp, out, last = mac(chaining, material), [], b""
    for i in range(1, outputs + 1):
        last = mac(temp, last + bytes([i]))
        out.append(last)
    return out


def address(text):
    a = ipaddress.ip_address(text)
    return a.packed if a.version == 6 else bytes(10) + b"\xff\xff" + a.packed


def binding(client, server, port, hint, device=1, addresses=True):
    b = b"rdmactor-psk-1" + bytes([device, 1 if addresses else 0])
    if not addresses:
        return b + bytes(34) + hint
    return b + address(client) + address(server) + struct.pack(">H", port) + hint


class Credential:
    def __init__(self, identity, key):
        self.id = expand(key, b"psk id", identity, 8)
        self.psk = expand(key, b"psk", identity, 32)


class Noise:
    """Noise_NNpsk2_25519_..._SHA256."""

    def __init__(self, chacha, prologue):
        self.chacha = chacha
        name = b"Noise_NNpsk2_25519_%s_SHA256" % (b"ChaChaPoly" if chacha else b"AESGCM")
        self.h = name + bytes(32 - len(name)) if len(name) <= 32 else hashlib.sha256(name).digest()
        self.ck, self.k, self.n = self.h, None, 0
        self.mix_hash(prologue)
        self.private = X25519PrivateKey.generate()
        self.public = self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def mix_hash(self, data):
        self.h = hashlib.sha256(self.h + data).digest()

    def mix_key(self, material):
        self.ck, self.k = hkdf(self.ck, material, 2)
        self.n = 0

    def mix_key_and_hash(self, material):
        self.ck, h, self.k = hkdf(self.ck, material, 3)
        self.mix_hash(h)
        self.n = 0

    def cipher(self):
        if self.chacha:
            return ChaCha20Poly1305(self.k), bytes(4) + struct.pack("<Q", self.n)
        return AESGCM(self.k), bytes(4) + struct.pack(">Q", self.n)

    def encrypt(self, plain):
        aead, nonce = self.cipher()
        self.n += 1
        b = aead.encrypt(nonce, plain, self.h)
        self.mix_hash(b)
        return b

    def decrypt(self, sealed):
        aead, nonce = self.cipher()
        try:
            plain = aead.decrypt(nonce, sealed, self.h)
        except InvalidTag as e:
            raise Refused("the reply does not decrypt") from e
        self.n += 1
        self.mix_hash(sealed)
        return plain

    def e(self, public):
        """The token e, of a handshake that has a psk."""
        self.mix_hash(public)
        self.mix_key(public)

    def ee(self, other):
        try:
            self.mix_key(self.private.exchange(X25519PublicKey.from_public_bytes(other)))
        except ValueError as e:
            raise Refused("the shared secret is zeros") from e

    def split(self):
        return hkdf(self.ck, b"", 2)


class Direction:
    """Seals or opens what one side sends."""

    def __init__(self, chacha, secret):
        self.aead = ChaCha20Poly1305 if chacha else AESGCM
        self.secret, self.large = secret, expand(secret, b"large", b"", 32)
        self.rekey(secret)
        self.message = 0

    def rekey(self, secret):
        self.secret, self.number = secret, 0
        self.cipher = self.aead(expand(secret, b"key", b"", 32))
        self.iv = expand(secret, b"iv", b"", 12)

    def update(self):
        self.rekey(expand(self.secret, b"update", b"", 32))

    def nonce(self):
        n = int.from_bytes(self.iv, "big") ^ self.number
        self.number += 1
        return n.to_bytes(12, "big")

    def seal(self, plain):
        return self.cipher.encrypt(self.nonce(), plain, None)

    def open(self, record):
        try:
            return self.cipher.decrypt(self.nonce(), record, None)
        except InvalidTag as e:
            raise Refused("a record does not open") from e

    def large_cipher(self, number):
        return self.aead(expand(self.large, b"message", struct.pack(">Q", number), 32))

    def seal_large(self, plain):
        """The memory that is offered, and the message's number."""
        self.message += 1
        aead, body, tags = self.large_cipher(self.message), b"", b""
        for i, part, last in segments(plain):
            b = aead.encrypt(large_nonce(i, last), part, None)
            body, tags = body + b[:-16], tags + b[-16:]
        return body + tags, self.message

    def open_large(self, sealed, n, number):
        if number <= self.message:
            raise Refused("an offer's number does not rise")
        self.message = number
        aead, plain, tags = self.large_cipher(number), b"", sealed[n:]
        for i, part, last in segments(sealed[:n]):
            try:
                tag = tags[16 * i : 16 * i + 16]
                plain += aead.decrypt(large_nonce(i, last), part + tag, None)
            except InvalidTag as e:
                raise Refused("segment %d does not open" % i) from e
        return plain


def segments(b):
    count = -(-len(b) // SEGMENT)
    for i in range(count):
        yield i, b[i * SEGMENT : (i + 1) * SEGMENT], i == count - 1


def large_nonce(i, last):
    return bytes(7) + struct.pack(">IB", i, 1 if last else 0)


def sealed_length(n):
    return n + 16 * -(-n // SEGMENT)


class Client:
    """The client's side of the handshake."""

    def __init__(self, chacha, credential, bound, hello):
        self.credential = credential
        self.noise = Noise(chacha, bound + hello + credential.id)
        self.noise.e(self.noise.public)
        self.noise.encrypt(b"")  # the tag is not sent
        self.private = hello + bound[-4:] + self.noise.public + credential.id

    def finish(self, reply):
        """Gives what seals, and what opens."""
        if len(reply) < 72 or reply[3] != 60:
            raise Refused("the reply has %d bytes" % len(reply))
        hello, e, sealed = reply[:12], reply[12:44], reply[44:72]
        self.noise.e(e)
        self.noise.ee(e)
        self.noise.mix_key_and_hash(self.credential.psk)
        if self.noise.decrypt(sealed) != hello:
            raise Refused("the reply's hello is not the one that is encrypted")
        return directions(self.noise)


class Server:
    """The server's side of the handshake."""

    def __init__(self, chacha, credential, bound, request, hello):
        request, e, key_id = request[:12], request[16:48], request[48:56]
        if key_id != credential.id:
            raise Refused("no key has this id")
        n = Noise(chacha, bound + request + key_id)
        n.e(e)
        n.encrypt(b"")
        n.e(n.public)
        n.ee(e)
        n.mix_key_and_hash(credential.psk)
        self.private = hello + n.public + n.encrypt(hello)
        opens, seals = directions(n)
        self.seals, self.opens = seals, opens


def directions(noise):
    """The client's direction, and the server's."""
    k1, k2 = noise.split()
    return [Direction(noise.chacha, expand(k, b"traffic", noise.h, 32)) for k in (k1, k2)]
