package nldev

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// e is the host's byte order, which netlink uses.
var e = binary.NativeEndian

// message returns a struct nlmsghdr and its payload.
func message(kind, flags uint16, payload ...[]byte) []byte {
	all := slices.Concat(payload...)
	b := e.AppendUint32(nil, uint32(headerLen+len(all)))
	b = e.AppendUint16(b, kind)
	b = e.AppendUint16(b, flags)
	b = append(b, make([]byte, 8)...) // of no interest: nlmsg_seq, nlmsg_pid
	return append(append(b, all...), make([]byte, -len(all)&(aligned-1))...)
}

func device(name string, index uint32) []byte {
	b := Attr(nil, Index, e.AppendUint32(nil, index))
	b = Attr(b, Name, append([]byte(name), 0))
	return message(get, 2, Attr(b, 99, []byte{1}))
}

func errno(n unix.Errno) []byte { return e.AppendUint32(nil, uint32(-int32(n))) }

var done = message(nlmsgDone, 2, make([]byte, 4))

// read parses the receives of an answer.
func read(dump bool, receives ...[]byte) (all []Device, changed bool, err error) {
	a := &answer{dump: dump, message: func(payload []byte) error {
		d, err := parseDevice(payload)
		all = append(all, d)
		return err
	}}
	for more := true; more; receives = receives[1:] {
		if len(receives) == 0 {
			return all, a.changed, errors.New("the answer has no end")
		}
		if more, err = a.parseReceive(receives[0]); err != nil {
			return all, a.changed, err
		}
	}
	return all, a.changed, nil
}

// TestAnswers: a dump has a message for each device, in any number of parts, and ends with a
// separate one. Any other answer is one message.
func TestAnswers(t *testing.T) {
	want := []Device{{"rxe0", 0}, {"siw0", 7}, {"x", 8}}
	all, changed, err := read(true, slices.Concat(device("rxe0", 0), device("siw0", 7)), slices.Concat(device("x", 8), done))
	if err != nil || changed || !slices.Equal(all, want) {
		t.Errorf("%v, %v, %v", all, changed, err)
	}
	if all, changed, err = read(true, message(get, 2|flagInterrupt, device("rxe0", 0)[headerLen:]), done); err != nil || !changed || len(all) != 1 {
		t.Errorf("it has changed meanwhile: %v, %v, %v", all, changed, err)
	}
	if all, _, err = read(true, message(nlmsgDone, 2)); err != nil || len(all) != 0 {
		t.Errorf("an empty one: %v, %v", all, err)
	}
	if all, _, err = read(false, device("siw0", 7)); err != nil || len(all) != 1 {
		t.Errorf("no dump: %v, %v", all, err)
	}
}

// TestBytes has requests byte by byte, as a little-endian machine has them.
func TestBytes(t *testing.T) {
	if e.Uint16([]byte{1, 0}) != 1 {
		t.Log("a big-endian machine has other bytes")
		return
	}
	want := []byte{
		24, 0, 0, 0, // nlmsg_len
		11, 20, // nlmsg_type: RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_CM_ID_GET)
		1, 3, // nlmsg_flags: NLM_F_REQUEST | NLM_F_DUMP
		0, 0, 0, 0, // nlmsg_seq
		0, 0, 0, 0, // nlmsg_pid
		8, 0, 1, 0, // RDMA_NLDEV_ATTR_DEV_INDEX
		2, 0, 0, 0,
	}
	if got := newRequest(Client|11, true, Attr(nil, Index, []byte{2, 0, 0, 0})); !slices.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
	want = []byte{22, 0, 0, 0, 15, 20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 69, 0, 'x', 0}
	if got := newRequest(Client|15, false, append(Attr(nil, 69, nil)[:0], 6, 0, 69, 0, 'x', 0)); !slices.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
}

// TestRefused: malformed answers are EPROTO, and the kernel's errors are errnos.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"an errno":              {message(nlmsgError, 0, errno(unix.EPERM)), unix.EPERM},
		"an errno at the end":   {message(nlmsgDone, 0, errno(unix.EPERM)), unix.EPERM},
		"an acknowledgement":    {message(nlmsgError, 0, make([]byte, 4)), unix.EPROTO},
		"a short error":         {message(nlmsgError, 0, make([]byte, 3))[:headerLen+3], unix.EPROTO},
		"a positive error":      {message(nlmsgError, 0, e.AppendUint32(nil, 1)), unix.EPROTO},
		"no name":               {message(get, 2, Attr(nil, Index, make([]byte, 4))), unix.EPROTO},
		"no index":              {message(get, 2, Attr(nil, Name, []byte("siw0"))), unix.EPROTO},
		"an attribute's length": {message(get, 2, e.AppendUint16(e.AppendUint16(nil, 3), Name)), unix.EPROTO},
		"a long attribute":      {message(get, 2, device("siw0", 7)[headerLen:], e.AppendUint16(e.AppendUint16(nil, 9), 99), make([]byte, 4)), unix.EPROTO},
		"a message's length":    {e.AppendUint32(nil, 15), unix.EPROTO},
		"a long message":        {append(e.AppendUint32(nil, 1<<31), make([]byte, 12)...), unix.EPROTO},
	} {
		if _, _, err := read(true, c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	whole := device("siw0", 7)
	for n := 1; n < len(whole); n++ {
		if _, _, err := read(true, whole[:n], done); !errors.Is(err, unix.EPROTO) {
			t.Errorf("the first %d bytes of %d: %v", n, len(whole), err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(slices.Concat(device("rxe0", 0), device("siw0", 7), done))
	f.Add(message(nlmsgError, 0, errno(unix.EPERM)))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, dump := range []bool{true, false} {
			all, _, err := read(dump, b)
			if err == nil && len(all) > len(b)/headerLen {
				t.Fatalf("%d devices in %d bytes", len(all), len(b))
			}
		}
	})
}
