package iwarp

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/sockets"
	"github.com/rdmactor/rdmactor/states"
)

// seeded is Linux's Stack, except that its random numbers come from a seed.
type seeded struct {
	sockets.Linux
	random *rand.ChaCha8
	closed []int
}

func (s *seeded) Random(b []byte) { _, _ = s.random.Read(b) } // never fails

func (s *seeded) EphemeralPorts() (low, n int) { return 20000, 10000 }

func (s *seeded) Close(fd int) error {
	s.closed = append(s.closed, fd)
	return s.Linux.Close(fd)
}

// seededNode returns a node with its own seeded Stack.
func seededNode(t *testing.T) (*node, *seeded) {
	t.Helper()
	s := &seeded{random: rand.NewChaCha8([32]byte{1})}
	return newNodeOf(t, Config{}.NewOn(func() sockets.Stack { return s })), s
}

// TestChanceIsTheStacks: all random choices of the device come from its Stack, so a simulation that
// repeats them repeats every byte.
func TestChanceIsTheStacks(t *testing.T) {
	type chosen struct {
		key  uint32
		addr uint64
		port uint16
	}
	var got [2]chosen
	for i := range got {
		n, _ := seededNode(t)
		mr := n.alloc(64, anyAccess)
		h := n.id()
		n.do(h, &cmid.ResolveAddr{Dst: cmid.MustAddr("127.0.0.1:9")})
		n.wait(h, states.KindAddrResolved)
		got[i] = chosen{mr.RKey, mr.Addr, n.in.ids[h].Info().Local.Port()}
		n.do(h, &cmid.DestroyID{}) // the port is free for the other one
	}
	if got[0] != got[1] {
		t.Errorf("with the same seed the device chose %v, then %v", got[0], got[1])
	}
	if port := got[0].port; port < 20000 || port >= 30000 {
		t.Errorf("chose port %d, which is not one of the Stack's", port)
	}
}

// TestProcessesShareNoPorts: devices of NewOn are in different processes, so conflicts over a port
// are only detected by the machine.
func TestProcessesShareNoPorts(t *testing.T) {
	one, _ := seededNode(t)
	two, _ := seededNode(t)
	a := one.id()
	one.do(a, &cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:0")})
	addr := one.in.ids[a].Info().Local
	same, other := one.id(), two.id()
	if err := one.in.ids[same].Do(&cmid.BindAddr{Addr: addr}); !errors.Is(err, cmid.ErrPortTaken) {
		t.Errorf("in the same process: %v, want %v", err, cmid.ErrPortTaken)
	}
	err := two.in.ids[other].Do(&cmid.BindAddr{Addr: addr})
	if !errors.Is(err, unix.EADDRINUSE) || errors.Is(err, cmid.ErrPortTaken) {
		t.Errorf("in another process: %v, want the machine's EADDRINUSE", err)
	}
}

// TestCloseInOrder: an instance that is closed destroys its identifiers in the order in which they
// were made, and not in a map's.
func TestCloseInOrder(t *testing.T) {
	n, s := seededNode(t)
	var want []int
	for range 50 {
		h := n.id()
		n.do(h, &cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:0")})
		want = append(want, n.in.ids[h].fd)
	}
	s.closed = nil
	if err := n.inst.Close(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.closed, want) {
		t.Errorf("closed sockets %v, want %v", s.closed, want)
	}
}

// reserving is a Stack whose operator has reserved the even ports.
type reserving struct{ seeded }

func (*reserving) ReservedPort(port int) bool { return port%2 == 0 }

// TestReservedPorts: the port drawn for a connection is none that the operator has reserved, as
// bind(2) draws none of them.
func TestReservedPorts(t *testing.T) {
	s := &reserving{seeded{random: rand.NewChaCha8([32]byte{1})}}
	n := newNodeOf(t, Config{}.NewOn(func() sockets.Stack { return s }))
	for range 100 {
		h := n.id()
		n.do(h, &cmid.ResolveAddr{Dst: cmid.MustAddr("127.0.0.1:9")})
		n.wait(h, states.KindAddrResolved)
		if port := n.in.ids[h].Info().Local.Port(); port%2 == 0 {
			t.Fatalf("port %d is reserved", port)
		}
		n.do(h, &cmid.DestroyID{})
	}
}
