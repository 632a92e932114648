package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// e has the host's byte order: that of netlink.
var e = binary.NativeEndian

// attr is an attribute and its padding.
func attr(kind uint16, value ...byte) []byte {
	b := e.AppendUint16(nil, uint16(attrLen+len(value)))
	b = append(e.AppendUint16(b, kind), value...)
	return append(b, make([]byte, -len(b)&3)...)
}

func number(kind uint16, n uint32) []byte { return attr(kind, e.AppendUint32(nil, n)...) }
func letters(kind uint16, s string) []byte {
	return attr(kind, append([]byte(s), 0)...)
}

// nest is an attribute of attributes. The kernel marks it since 5.2 (NLA_F_NESTED).
func nest(kind uint16, of ...[]byte) []byte { return attr(kind|1<<15, join(of...)...) }

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// message is a struct nlmsghdr and its payload.
func message(kind, flags uint16, sequence uint32, payload []byte) []byte {
	b := e.AppendUint32(nil, uint32(headerLen+len(payload)))
	b = e.AppendUint16(b, kind)
	b = e.AppendUint16(b, flags)
	b = e.AppendUint32(b, sequence)
	b = e.AppendUint32(b, 4711) // the port of this socket
	return append(b, payload...)
}

// storage is a struct sockaddr_storage.
func storage(family uint16, rest ...byte) []byte {
	b := append(e.AppendUint16(nil, family), rest...)
	return append(b, make([]byte, 128-len(b))...)
}

// table is made up: a message of RDMA_NLDEV_CMD_RES_CM_ID_GET with two identifiers, one of the
// kernel's own (nvme_rdma) whose two addresses are of different families, and an attribute that
// this package does not know. What kernels send is what TestKernelIDs reads, in a machine.
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
	table  = join(number(attrDevIndex, 2), letters(attrDevName, "rxe0"), nest(attrCMID, listener, connection))
	wanted = []ID{
		{Device: "rxe0", Port: 1, CMIDN: 3, State: "LISTEN", PS: "TCP", PID: 1234, Local: Addr{AddrPort: netip.MustParseAddrPort("0.0.0.0:7174")}},
		{
			Device: "rxe0", Port: 1, CMIDN: 4, LQPN: 17, Type: "RC", State: "CONNECT", PS: "TCP", Command: "[nvme_rdma]",
			Local: Addr{AddrPort: netip.MustParseAddrPort("10.10.1.1:7174")}, Peer: Addr{AddrPort: netip.MustParseAddrPort("[fe80::1%2]:50000")},
		},
	}
)

var compareAddr = cmp.Comparer(func(a, b Addr) bool { return a == b })

// dumped reads what a dump's receives have given.
func dumped(receives ...[]byte) (ids []ID, r *reader, err error) {
	r = &reader{sequence: 7}
	r.message = func(payload []byte) (err error) {
		ids, err = parseIDs(payload, ids)
		return err
	}
	for more := true; more; receives = receives[1:] {
		if len(receives) == 0 {
			return ids, r, errors.New("the dump has no end")
		}
		if more, err = r.take(receives[0]); err != nil {
			return ids, r, err
		}
	}
	return ids, r, nil
}

var done = message(nlmsgDone, 2, 7, make([]byte, 4))

func TestTable(t *testing.T) {
	ids, r, err := dumped(message(nldevResCMID, 2, 7, table), done)
	if diff := cmp.Diff(wanted, ids, compareAddr); err != nil || diff != "" || r.changed {
		t.Errorf("%v\n%s", err, diff)
	}
	// several messages in one receive, one of them to an earlier request; it has changed meanwhile
	ids, r, err = dumped(join(message(nldevResCMID, 2, 6, table), message(nldevResCMID, 2|flagInterrupt, 7, table), done))
	if diff := cmp.Diff(wanted, ids, compareAddr); err != nil || diff != "" || !r.changed {
		t.Errorf("%v\n%s", err, diff)
	}
	if ids, _, err := dumped(done); err != nil || len(ids) != 0 {
		t.Errorf("an empty table: %v, %v", ids, err)
	}
}

// TestBytes has the request and a message byte by byte, as a little-endian machine has them.
func TestBytes(t *testing.T) {
	if e.Uint16([]byte{1, 0}) != 1 {
		t.Log("a big-endian machine has other bytes")
		return
	}
	want := []byte{
		24, 0, 0, 0, // nlmsg_len
		11, 20, // nlmsg_type: RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_CM_ID_GET)
		1, 3, // nlmsg_flags: NLM_F_REQUEST | NLM_F_DUMP
		7, 0, 0, 0, // nlmsg_seq
		0, 0, 0, 0, // nlmsg_pid
		8, 0, 1, 0, // RDMA_NLDEV_ATTR_DEV_INDEX
		2, 0, 0, 0,
	}
	if got := request(nldevResCMID, 7, 2, true); !cmp.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
	if got := request(nldevGet, 7, 0, false); len(got) != headerLen || got[0] != headerLen || got[4] != 1 || got[5] != 20 {
		t.Errorf("the request for devices: % x", got)
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

func TestDevice(t *testing.T) {
	d, err := parseDevice(join(number(attrDevIndex, 0), letters(attrDevName, "siw0"), number(attrPortIndex, 1)))
	if err != nil || d != (device{"siw0", 0}) {
		t.Errorf("%+v, %v", d, err)
	}
	for _, bad := range [][]byte{nil, number(attrDevIndex, 1), letters(attrDevName, "siw0")} {
		if _, err := parseDevice(bad); !errors.Is(err, unix.EPROTO) {
			t.Errorf("% x: %v", bad, err)
		}
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

// TestRefused: what the kernel does not send is EPROTO, and its errors are errnos.
func TestRefused(t *testing.T) {
	refused := -int32(unix.EPERM)
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"an errno":               {message(nlmsgError, 0, 7, e.AppendUint32(nil, uint32(refused))), unix.EPERM},
		"an errno at the end":    {message(nlmsgDone, 0, 7, e.AppendUint32(nil, uint32(refused))), unix.EPERM},
		"an acknowledgement":     {message(nlmsgError, 0, 7, make([]byte, 4)), unix.EPROTO},
		"a short error":          {message(nlmsgError, 0, 7, make([]byte, 3)), unix.EPROTO},
		"no state":               {message(nldevResCMID, 2, 7, nest(attrCMID, nest(attrCMIDEntry, number(attrPS, 0x0106)))), unix.EPROTO},
		"no port space":          {message(nldevResCMID, 2, 7, nest(attrCMID, nest(attrCMIDEntry, attr(attrState, 1)))), unix.EPROTO},
		"a short number":         {message(nldevResCMID, 2, 7, nest(attrCMID, nest(attrCMIDEntry, attr(attrPS, 1, 2)))), unix.EPROTO},
		"a short address":        {message(nldevResCMID, 2, 7, nest(attrCMID, nest(attrCMIDEntry, attr(attrSrc, 2, 0, 0, 80)))), unix.EPROTO},
		"an attribute's length":  {message(nldevResCMID, 2, 7, join(e.AppendUint16(nil, 3), e.AppendUint16(nil, attrDevName))), unix.EPROTO},
		"a long attribute":       {message(nldevResCMID, 2, 7, join(e.AppendUint16(nil, 9), e.AppendUint16(nil, attrDevName), make([]byte, 4))), unix.EPROTO},
		"an address of one byte": {message(nldevResCMID, 2, 7, nest(attrCMID, nest(attrCMIDEntry, attr(attrDst, 2)))), unix.EPROTO},
	} {
		if _, _, err := dumped(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	whole := message(nldevResCMID, 2, 7, table)
	for n := 1; n < len(whole); n++ {
		if _, _, err := dumped(whole[:n], done); !errors.Is(err, unix.EPROTO) {
			t.Errorf("the first %d bytes of %d: %v", n, len(whole), err)
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
	f.Add(join(message(nldevResCMID, 2, 7, table), done))
	f.Add(message(nlmsgError, 0, 7, []byte{1, 2, 3}))
	f.Fuzz(func(t *testing.T, b []byte) {
		ids, _, err := dumped(b)
		if err == nil && len(ids) > len(b)/attrLen {
			t.Fatalf("%d identifiers in %d bytes", len(ids), len(b))
		}
		for _, id := range ids {
			if id.State == "" || id.PS == "" || strings.Contains(fmt.Sprint(id.Local), "invalid") {
				t.Fatalf("%+v", id)
			}
		}
		_, _ = parseDevice(b)
	})
}
