"""As little of iWARP as a peer needs: MPA (RFC 5044, RFC 6581), DDP (RFC 5041), RDMAP (RFC 5040).

One connection, blocking sockets, no threads. It sends Sends, takes Sends in, reads the peer's
memory, and serves the peer's Reads of its own while it waits for something.
"""

import socket
import struct

REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
MARKERS, CRC, REJECT, ENHANCED = 0x80, 0x40, 0x20, 0x10
DEPTH = 8  # the Reads that each side may have under way
WRITE, READ_REQUEST, READ_RESPONSE, SEND, TERMINATE = 0, 1, 2, 3, 7
SENDS = (3, 4, 5, 6)
SEGMENT = 16384

_TABLE = []
for _n in range(256):
    for _ in range(8):
        _n = _n >> 1 ^ (0x82F63B78 if _n & 1 else 0)
    _TABLE.append(_n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for b in data:
        crc = _TABLE[(crc ^ b) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Ended(Exception):
    """The connection is over: closed, reset, or ended by a Terminate."""


class Pair:
    """One connection."""

    def __init__(self, sock, timeout=20):
        self.sock = sock
        sock.settimeout(timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.crc = False
        self.sent, self.asked = 0, 0  # Sends and Read Requests
        self.arrived = []  # Sends that nobody has taken
        self.parts = b""  # of a Send that is not complete
        self.memory = {}  # by key: address, bytes
        self.read_data = None  # what the Read under way has brought
        self.read_done = False

    # MPA

    def _take(self, n):
        got = bytearray()
        while len(got) < n:
            try:
                more = self.sock.recv(n - len(got))
            except ConnectionError as e:
                raise Ended(str(e)) from e
            if not more:
                raise Ended("closed behind %d of %d bytes" % (len(got), n))
            got += more
        return bytes(got)

    def _put(self, b):
        try:
            self.sock.sendall(b)
        except ConnectionError as e:
            raise Ended(str(e)) from e

    def _frame(self, key):
        """A Request or Reply: flags, revision, private data."""
        head = self._take(20)
        if head[:16] != key:
            raise Ended("not an MPA frame: %r" % head[:16])
        flags, revision, n = struct.unpack(">BBH", head[16:])
        private = self._take(n)
        if flags & MARKERS:
            raise Ended("the peer demands markers")
        if revision == 2 and flags & ENHANCED:
            private = private[4:]
        self.crc = self.crc or bool(flags & CRC)
        return flags, revision, private

    def connect(self, private):
        """Sends a Request; gives the Reply's private data and whether it is a reject."""
        enhanced = struct.pack(">HH", DEPTH, DEPTH)  # client and server: no ready-to-receive
        body = enhanced + private
        self._put(REQUEST + struct.pack(">BBH", ENHANCED, 2, len(body)) + body)
        flags, _, back = self._frame(REPLY)
        return back, bool(flags & REJECT)

    def request(self):
        """Takes a Request in; gives its private data."""
        flags, self.revision, private = self._frame(REQUEST)
        return private

    def answer(self, private, reject=False):
        flags = (REJECT if reject else 0) | (CRC if self.crc else 0)
        if self.revision == 2:
            flags, private = flags | ENHANCED, struct.pack(">HH", DEPTH, DEPTH) + private
        self._put(REPLY + struct.pack(">BBH", flags, self.revision, len(private)) + private)

    def _fpdu(self, ulpdu):
        b = struct.pack(">H", len(ulpdu)) + ulpdu
        b += bytes(-len(b) % 4)
        # RFC 5044 has the CRC least significant byte first.
        return b + (struct.pack("<I", crc32c(b)) if self.crc else bytes(4))

    def _ulpdu(self):
        head = self._take(2)
        (n,) = struct.unpack(">H", head)
        rest = self._take(n + -(n + 2) % 4 + 4)
        if self.crc and struct.unpack("<I", rest[-4:])[0] != crc32c(head + rest[:-4]):
            raise Ended("CRC")
        return rest[:n]

    # DDP and RDMAP

    def _untagged(self, opcode, queue, number, b):
        out = bytearray()
        for at in range(0, max(len(b), 1), SEGMENT):
            part = b[at : at + SEGMENT]
            last = 0x40 if at + len(part) == len(b) else 0
            out += self._fpdu(
                struct.pack(">BBIIII", last | 1, 0x40 | opcode, 0, queue, number, at) + part
            )
        self._put(out)

    def send(self, b):
        self.sent += 1
        self._untagged(SEND, 0, self.sent, b)

    def receive(self):
        """The next Send."""
        while not self.arrived:
            self._one()
        return self.arrived.pop(0)

    def read(self, key, address, n):
        """Reads n bytes of the peer's memory."""
        self.read_data, self.read_done, self.asked = bytearray(n), False, self.asked + 1
        self._untagged(
            READ_REQUEST, 1, self.asked, struct.pack(">IQIIQ", 0x5151, 0, n, key, address)
        )
        while not self.read_done:
            self._one()
        b, self.read_data = bytes(self.read_data), None
        return b

    def _one(self):
        """Takes one FPDU in."""
        u = self._ulpdu()
        if not u:
            raise Ended("an empty FPDU")
        last, opcode = u[0] & 0x40, u[1] & 0x0F
        if u[0] & 0x80:  # tagged
            key, offset = struct.unpack(">IQ", u[2:14])
            if opcode == WRITE and len(u) == 14:
                return  # of no bytes: it has the peer look again, and touches no memory
            if opcode != READ_RESPONSE or key != 0x5151 or self.read_data is None:
                raise Ended("a tagged message that nobody has asked for")
            self.read_data[offset : offset + len(u) - 14] = u[14:]
            self.read_done = bool(last)
            return
        if opcode in SENDS:
            self.parts += u[18:]
            if last:
                self.arrived.append(self.parts)
                self.parts = b""
        elif opcode == READ_REQUEST:
            self._serve(*struct.unpack(">IQIIQ", u[18:46]))
        elif opcode == TERMINATE:
            raise Ended("Terminate " + u[18:22].hex())
        else:
            raise Ended("opcode %d" % opcode)

    def _serve(self, sink, to, n, key, address):
        begin, b = self.memory[key]
        if address < begin or address + n > begin + len(b):
            raise Ended("a Read outside of the memory")
        b = b[address - begin : address - begin + n]
        out = bytearray()
        for at in range(0, max(n, 1), SEGMENT):
            part = b[at : at + SEGMENT]
            last = 0x40 if at + len(part) == n else 0
            out += self._fpdu(
                struct.pack(">BBIQ", 0x80 | last | 1, 0x40 | READ_RESPONSE, sink, to + at) + part
            )
        self._put(out)

    def disconnect(self):
        self.sock.shutdown(socket.SHUT_WR)

    def close(self):
        self.sock.close()
