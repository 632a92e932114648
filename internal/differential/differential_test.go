package differential

import (
	"flag"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid/cmidtest"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/states"
)

var (
	seedFlag    = flag.Uint64("differential.seed", 0, "run the program of this seed; with -differential.count, of so many from it on")
	countFlag   = flag.Int("differential.count", 0, "how many programs; 0: what suits an ordinary test")
	shrinkFlag  = flag.Duration("differential.shrink", 12*time.Second, "how long to shrink each finding")
	programFlag = flag.String("differential.program", "", "run this program: its listing, with semicolons for new lines")
)

// longRun is the number of programs in which every accepted difference should show.
const longRun = 1000

var (
	twinIB       = Twin("twin IB", cmidtest.Config{})
	twinIWARP    = Twin("twin iWARP", cmidtest.Config{Flavor: states.IWARP})
	twinEmbedded = Twin("twin embedded", cmidtest.Config{Flavor: states.IWARP, Embedded: true})
)

// TestIWARP compares the embedded device with the twin that plays it.
func TestIWARP(t *testing.T) {
	hunt(t, &Pair{Name: EmbeddedPair, Guide: twinEmbedded, Left: twinEmbedded, Right: embedded(t)}, 200)
}

// TestSoftIWARP compares the twin that plays soft-iWARP with the one that plays the embedded
// device.
func TestSoftIWARP(t *testing.T) {
	hunt(t, &Pair{Name: TwinsPair, Guide: twinIWARP, Left: twinIWARP, Right: twinEmbedded}, 600)
}

// TestTwice compares InfiniBand's twin with itself: the harness compares nothing that depends on
// chance.
func TestTwice(t *testing.T) {
	hunt(t, &Pair{Name: "twin IB, twin IB", Guide: twinIB, Left: twinIB, Right: twinIB}, 100)
}

// embedded is the embedded device on an address of this host.
func embedded(t *testing.T) Side {
	t.Helper()
	addr := hostAddress(t)
	return Side{Name: "iwarp", Open: func() (Rig, error) {
		ports, err := FreePorts()
		return Rig{
			Driver: iwarp.New(), Address: addr, Foreign: netip.MustParseAddr("203.0.113.77"), Ports: ports,
			// It is a group: no connection leads there, whatever routes there are.
			NoRoute:  netip.MustParseAddr("ff0e::7471"),
			Patience: time.Second,
		}, err
	}}
}

// hostAddress is an IPv4 address of this host, if possible not loopback.
func hostAddress(t *testing.T) netip.Addr {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			return p.Addr()
		}
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// hunt runs as many programs as the flags say, or count, and reports what was found.
func hunt(t *testing.T, p *Pair, count int) {
	t.Helper()
	if *programFlag != "" {
		replay(t, p)
		return
	}
	h := &Hunt{Pair: p, First: 1, Count: count, Most: 12, ShrinkFor: *shrinkFlag}
	if *seedFlag != 0 {
		h.First, h.Count = *seedFlag, 1
	}
	if *countFlag != 0 {
		h.Count = *countFlag
	}
	if *seedFlag != 0 && h.Count == 1 {
		h.Each = func(_ uint64, prog Program) { t.Logf("the program:\n%v", prog) }
	}
	h.Found = func(f *Finding) {
		if f.Again {
			t.Error(f)
			return
		}
		t.Log(f) // a race, or a machine too busy to answer in time
	}
	begin := time.Now()
	res, err := h.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d programs, %d turns, %d commands, %.1f s", res.Programs, res.Turns, res.Commands, time.Since(begin).Seconds())
	for i := range Accepted {
		e := &Accepted[i]
		if !slices.Contains(e.Pairs, p.Name) {
			continue
		}
		t.Logf("accepted %d times: %s in %v: %v", res.Used[e], e.Command, e.States, e.Deltas)
		if !e.Rare && res.Used[e] == 0 && res.Programs >= longRun && len(res.Findings) == 0 {
			t.Errorf("the accepted difference of %s in %v, %v, never showed in %d programs", e.Command, e.States, e.Deltas, res.Programs)
		}
	}
}

// replay runs the listing of -differential.program.
func replay(t *testing.T, p *Pair) {
	t.Helper()
	prog, err := ParseProgram(*programFlag)
	if err != nil {
		t.Fatal(err)
	}
	d, err := p.Run(prog, make(map[*Entry]int))
	if err != nil {
		t.Fatal(err)
	}
	if d != nil {
		t.Error(d)
	}
}
