package compare

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/kernel"
	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/page"
)

func addr(s string) kernel.Addr {
	if s == "" {
		return kernel.Addr{}
	}
	return kernel.Addr{AddrPort: netip.MustParseAddrPort(s)}
}

func row(id uint64, state, device, local, peer string) page.Row {
	return page.Row{ID: id, State: state, Device: device, Local: local, Peer: peer}
}

func in(n uint32, state, device, local, peer string) kernel.ID {
	return kernel.ID{CMIDN: n, State: state, Device: device, Local: addr(local), Peer: addr(peer)}
}

func TestJoin(t *testing.T) {
	rows := []page.Row{
		row(1, "listening", "", "0.0.0.0:7", ""),
		row(2, "connected", "rxe0", "10.0.0.1:7", "10.0.0.2:50000"),
		row(3, "connected", "rxe0", "10.0.0.1:7", "10.0.0.2:50001"),
		row(4, "connected", "siw0", "[fe80::1%eth0]:7", "[fe80::2%eth0]:50000"),
		row(5, "peer-disconnected", "siw0", "10.0.0.1:7", "10.0.0.2:50000"),
		row(6, "idle", "", "", ""),
		row(7, "connected", "iwarp", "10.0.0.1:7", "10.0.0.2:50000"),
		row(8, "listening", "", "0.0.0.0:8", ""),
		row(9, "timewait", "rxe0", "10.0.0.3:7", "10.0.0.4:7"),
		row(10, "connected", "rxe0", "10.0.0.3:7", "10.0.0.4:7"),
		row(11, "singing", "rxe0", "\x1b[2J", "::::"),
	}
	ids := []kernel.ID{
		in(1, "LISTEN", "rxe0", "0.0.0.0:7", ""),
		in(2, "LISTEN", "siw0", "0.0.0.0:7", "0.0.0.0:0"),
		in(3, "CONNECT", "rxe0", "10.0.0.1:7", "10.0.0.2:50000"),
		in(4, "CONNECT", "rxe0", "10.0.0.1:7", "10.0.0.9:1"),
		in(5, "CONNECT", "siw0", "[fe80::1%2]:7", "[fe80::2%2]:50000"),
		in(6, "CONNECT", "siw0", "10.0.0.1:7", "10.0.0.2:50000"),
		in(7, "CONNECT", "rxe0", "10.0.0.3:7", "10.0.0.4:7"),
		in(8, "DISCONNECT", "rxe0", "10.0.0.3:7", "10.0.0.4:7"),
	}
	want := []string{
		"1 both 1 2", "2 both 3", "3 program", "4 both 5", "5 differ 6", "6 apart", "7 apart", "8 program",
		"9 both 8", "10 both 7", "11 program", "- kernel 4",
	}
	var got []string
	for _, p := range Join(rows, ids, []string{"rxe0", "siw0"}) {
		line := "-"
		if p.Program != nil {
			line = fmt.Sprint(p.Program.ID)
		}
		line += " " + string(p.Who)
		for _, k := range p.Kernel {
			line += fmt.Sprint(" ", k.CMIDN)
		}
		got = append(got, line)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if pairs := Join(rows[:1], nil, nil); pairs[0].Who != Apart {
		t.Errorf("a listener, and a kernel without devices: %s", pairs[0].Who)
	}
}
