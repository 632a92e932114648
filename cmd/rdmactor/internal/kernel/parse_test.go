package kernel

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/nldev"
)

// e is the host's byte order, which netlink uses.
var e = binary.NativeEndian

func attr(kind uint16, value ...byte) []byte { return nldev.Attr(nil, kind, value) }

func number(kind uint16, n uint32) []byte { return attr(kind, e.AppendUint32(nil, n)...) }
func letters(kind uint16, s string) []byte {
	return attr(kind, append([]byte(s), 0)...)
}

// nest returns an attribute of attributes. The kernel marks these since 5.2 (NLA_F_NESTED).
func nest(kind uint16, of ...[]byte) []byte { return attr(kind|1<<15, join(of...)...) }

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// storage returns a struct sockaddr_storage.
func storage(family uint16, rest ...byte) []byte {
	b := append(e.AppendUint16(nil, family), rest...)
	return append(b, make([]byte, 128-len(b))...)
}

// table is a made-up message of RDMA_NLDEV_CMD_RES_CM_ID_GET with two identifiers, one of the
// kernel's (nvme_rdma) whose two addresses are of different families, and an attribute that this
// package does not know. TestKernelIDs reads real messages, in a virtual machine.
var (
	listener = nest(attrCMIDEntry,
		number(attrPortIndex, 1),
		number(attrPS, 0x0106),
		attr(attrState, 8),
		attr(attrSrc, storage(familyInet, 0x1c, 0x06)...), // 0.0.0.0:7174
		number(attrCMIDN, 3),
		number(attrPID, 1234),
	)
	connection = nest(attrCMIDEntry,
		number(attrPortIndex, 1),
		number(attrLQPN, 17),
		attr(attrType, 2),
		number(attrPS, 0x0106),
		attr(attrState, 5),
		attr(attrSrc, storage(familyInet, 0x1c, 0x06, 10, 10, 1, 1)...),
		attr(attrDst, storage(familyInet6, join([]byte{0xc3, 0x50, 0, 0, 0, 0, 0xfe, 0x80},
			make([]byte, 13), []byte{1}, e.AppendUint32(nil, 2))...)...),
		number(attrCMIDN, 4),
		letters(attrKernName, "nvme_rdma"),
		attr(999, 1, 2, 3), // of a newer kernel
	)
	table  = join(number(nldev.Index, 2), letters(nldev.Name, "rxe0"), nest(attrCMID, listener, connection))
	wanted = []ID{
		{Device: "rxe0", Port: 1, CMIDN: 3, State: "LISTEN", PS: "TCP", PID: 1234, Local: Addr{AddrPort: netip.MustParseAddrPort("0.0.0.0:7174")}},
		{
			Device: "rxe0", Port: 1, CMIDN: 4, LQPN: 17, Type: "RC", State: "CONNECT", PS: "TCP", Command: "[nvme_rdma]",
			Local: Addr{AddrPort: netip.MustParseAddrPort("10.10.1.1:7174")}, Peer: Addr{AddrPort: netip.MustParseAddrPort("[fe80::1%2]:50000")},
		},
	}
)

var compareAddr = cmp.Comparer(func(a, b Addr) bool { return a == b })

func TestTable(t *testing.T) {
	ids, err := parseIDs(table, nil)
	if diff := cmp.Diff(wanted, ids, compareAddr); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if ids, err = parseIDs(table, ids); err != nil || len(ids) != 2*len(wanted) {
		t.Errorf("a second message: %v, %v", ids, err)
	}
}

// TestBytes has a message byte by byte, as on a little-endian machine.
func TestBytes(t *testing.T) {
	if e.Uint16([]byte{1, 0}) != 1 {
		t.Log("a big-endian machine has other bytes")
		return
	}
	entry := []byte{
		2*16 + 12 + 12, 0, 31, 0x80, // RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY
		8, 0, 32, 0, 6, 1, 0, 0, // RDMA_NLDEV_ATTR_RES_PS: RDMA_PS_TCP
		5, 0, 27, 0, 7, 0, 0, 0, // RDMA_NLDEV_ATTR_RES_STATE: ADDR_BOUND
		20, 0, 33, 0, 2, 0, 0, 80, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, // RDMA_NLDEV_ATTR_RES_SRC_ADDR
		8, 0, 28, 0, 210, 4, 0, 0, // RDMA_NLDEV_ATTR_RES_PID
		8, 0, 63, 0, 9, 0, 0, 0, // RDMA_NLDEV_ATTR_RES_CM_IDN
	}
	payload := join([]byte{9, 0, 2, 0, 's', 'i', 'w', '0', 0, 0, 0, 0, byte(len(entry) + 4), 0, 30, 0x80}, entry)
	ids, err := parseIDs(payload, nil)
	want1 := []ID{{Device: "siw0", CMIDN: 9, State: "ADDR_BOUND", PS: "TCP", PID: 1234, Local: Addr{AddrPort: netip.MustParseAddrPort("10.0.0.1:80")}}}
	if diff := cmp.Diff(want1, ids, compareAddr); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want string
	}{
		{storage(0), ""},
		{storage(17, 1, 2, 3), ""},
		{storage(familyInet, 0, 80, 10, 0, 0, 1), "10.0.0.1:80"},
		{storage(familyInet6, join([]byte{0, 80}, make([]byte, 19), []byte{1}, make([]byte, 4))...), "[::1]:80"},
		{storage(familyIB, join([]byte{0xff, 0xff, 0, 0, 0, 0, 0xfe, 0x80}, make([]byte, 13), []byte{1}, []byte{0, 0, 0, 0, 1, 6, 0, 80})...), "[fe80::1]/0x1060050"},
	} {
		a, err := parseAddr(c.b)
		if text, _ := a.MarshalText(); err != nil || string(text) != c.want {
			t.Errorf("% x: %s, %v, want %s", c.b[:32], text, err, c.want)
		}
	}
}

// TestRefused: messages that the kernel does not send are EPROTO.
func TestRefused(t *testing.T) {
	one := func(attrs ...[]byte) []byte { return nest(attrCMID, nest(attrCMIDEntry, attrs...)) }
	for name, b := range map[string][]byte{
		"no state":               one(number(attrPS, 0x0106)),
		"no port space":          one(attr(attrState, 1)),
		"a short number":         one(attr(attrPS, 1, 2)),
		"a short address":        one(attr(attrSrc, 2, 0, 0, 80)),
		"an address of one byte": one(attr(attrDst, 2)),
		"an attribute's length":  one([]byte{0xff, 0xff, attrPS, 0}),
	} {
		if ids, err := parseIDs(b, nil); !errors.Is(err, unix.EPROTO) || len(ids) != 0 {
			t.Errorf("%s: %v, %v", name, ids, err)
		}
	}
	for n := 1; n < len(table); n++ {
		// a truncated message is valid only at the end of an attribute
		if ids, err := parseIDs(table[:n], nil); err == nil && len(ids) != 0 || err != nil && !errors.Is(err, unix.EPROTO) {
			t.Errorf("the first %d bytes of %d: %v, %v", n, len(table), ids, err)
		}
	}
}

func TestProcess(t *testing.T) {
	for status, want := range map[string]uint32{
		"Name:\tTgid: 9\nUmask:\t0022\nTgid:\t4711\nNgid:\t0\n": 4711, "": 0, "Tgid:\t-1\n": 0, "Tgid:": 0, "Tgid:\t4294967296\n": 0,
	} {
		if got := processOf([]byte(status)); got != want {
			t.Errorf("%q: %d, want %d", status, got, want)
		}
	}
}

// TestNames: numbers that this package does not know are shown as numbers.
func TestNames(t *testing.T) {
	id, err := parseID(join(number(attrPS, 0x99), attr(attrState, 99), attr(attrType, 7)))
	if err != nil || id.PS != "UNKNOWN(0x99)" || id.State != "UNKNOWN(99)" || id.Type != "UNKNOWN(7)" {
		t.Errorf("%+v, %v", id, err)
	}
}

func FuzzTable(f *testing.F) {
	f.Add(table)
	f.Add(nest(attrCMID, nest(attrCMIDEntry, number(attrPS, 0x0106), attr(attrState, 5))))
	f.Fuzz(func(t *testing.T, b []byte) {
		ids, err := parseIDs(b, nil)
		if len(ids) > len(b)/8 || err != nil && !errors.Is(err, unix.EPROTO) {
			t.Fatalf("%d identifiers in %d bytes, %v", len(ids), len(b), err)
		}
		for _, id := range ids {
			if id.State == "" || id.PS == "" || strings.Contains(id.Local.String(), "invalid") {
				t.Fatalf("%+v", id)
			}
		}
	})
}
