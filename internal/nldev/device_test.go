package nldev

import (
	"errors"
	"maps"
	"testing"

	"golang.org/x/sys/unix"
)

// TestChardevAnswer: the kernel's answer about a device file, whole and cut off.
func TestChardevAnswer(t *testing.T) {
	answer := Attr(nil, attrChardevName, []byte("uverbs7\x00"))
	named := len(answer)
	answer = Attr(answer, attrDriverID, e.AppendUint32(nil, 18))
	driver := len(answer)
	answer = Attr(answer, attrChardevABI, e.AppendUint64(nil, 4))
	if c, err := parseChardev(answer); err != nil || c != (Chardev{Name: "uverbs7", ABI: 4, Driver: 18}) {
		t.Errorf("%+v, %v", c, err)
	}
	for n := range len(answer) {
		if c, err := parseChardev(answer[:n]); n != named && n != driver && !errors.Is(err, unix.EPROTO) || c.ABI != 0 {
			t.Errorf("cut to %d bytes: %+v, %v", n, c, err)
		}
	}
}

func TestDriverNames(t *testing.T) {
	for driver, want := range map[uint32]string{0: "", 1: "mlx5", 9: "irdma", DriverRXE: "rxe", DriverSIW: "siw", 20: "mana", 21: "number 21"} {
		if got := DriverName(driver); got != want {
			t.Errorf("driver %d is %q, want %q", driver, got, want)
		}
	}
}

// TestPortAnswer: a port has a number, and perhaps a network interface.
func TestPortAnswer(t *testing.T) {
	answer := Attr(nil, attrPortIndex, e.AppendUint32(nil, 2))
	if port, netdev, err := parsePort(answer); port != 2 || netdev != "" || err != nil {
		t.Errorf("%d, %q, %v", port, netdev, err)
	}
	answer = Attr(answer, attrNetdevName, []byte("eth7\x00"))
	if port, netdev, err := parsePort(answer); port != 2 || netdev != "eth7" || err != nil {
		t.Errorf("%d, %q, %v", port, netdev, err)
	}
	for _, odd := range [][]byte{nil, answer[:5], Attr(nil, attrPortIndex, []byte{2}), Attr(nil, attrPortIndex, make([]byte, 4))} {
		if port, _, err := parsePort(odd); !errors.Is(err, unix.EPROTO) {
			t.Errorf("%v: port %d, %v", odd, port, err)
		}
	}
}

// TestCounts: the numbers of a device's objects, and malformed answers.
func TestCounts(t *testing.T) {
	count := func(name string, n uint64) []byte {
		return Attr(Attr(nil, attrEntryName, append([]byte(name), 0)), attrEntryCount, e.AppendUint64(nil, n))
	}
	var table []byte
	for name, n := range map[string]uint64{"qp": 3, "cm_id": 1 << 40} {
		table = Attr(table, attrEntry, count(name, n))
	}
	got, err := parseCounts(Attr(nil, attrSummary, table))
	if want := map[string]uint64{"qp": 3, "cm_id": 1 << 40}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for i := range mostKinds {
		table = Attr(table, attrEntry, count(string(rune('!'+i)), 1))
	}
	for _, odd := range [][]byte{table, Attr(nil, attrEntry, nil), Attr(nil, attrEntry, []byte{9, 0, 1, 0})} {
		if got, err := parseCounts(Attr(nil, attrSummary, odd)); !errors.Is(err, unix.EPROTO) {
			t.Errorf("%v, %v", got, err)
		}
	}
}
