package actor

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
)

// hangUpOnce starts a proxy that hangs up on the first connection, as if its server were not there
// yet, and passes the others on. It returns the address to dial.
func hangUpOnce(t *testing.T, to string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for first := true; ; first = false {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if first {
				_, _ = c.Read(make([]byte, 1<<10)) // else it would reset
				_ = c.Close()
				continue
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				t.Error(err)
				_ = c.Close()
				return
			}
			for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
				all.Go(func() {
					_, _ = io.Copy(way[1], way[0])
					_ = way[1].(*net.TCPConn).CloseWrite()
				})
			}
		}
	})
	return l.Addr().String()
}

// TestFallbackLargeMessages: in MPA revision 1, in which nothing is agreed on about Reads, large
// messages go both ways, and the owner learns why that revision was used.
func TestFallbackLargeMessages(t *testing.T) {
	sys := testSystem(t)
	rt := openIWARP(t, sys)
	server, client := newProbe(t, sys, rt.OnLoop(), nil), newProbe(t, sys, rt.OnLoop(), nil)
	const large = 1 << 20
	_, at := listen(server, rt, "127.0.0.1:0", IDConfig{MaxMessage: large, Credits: 4})
	c := rt.CreateID(client.pid, IDConfig{MaxMessage: large, Credits: 4})
	client.send(c, &Dial{Addr: hangUpOnce(t, at)})
	_, s := next[*ConnectRequest](server)
	server.send(s, &Accept{})
	e, _ := next[*Established](client)
	if !errors.Is(e.Fallback, core.ErrNoReply) || e.MaxMessage != large {
		t.Errorf("established: %v, want why there was a fallback, and messages of %d", e, large)
	}
	if e, _ := next[*Established](server); e.MaxMessage != large {
		t.Errorf("established: %v, want messages of %d", e, large)
	}
	for range 3 {
		client.send(c, NewSend(pattern(large, 1)))
		if g := server.any(); g.data != string(pattern(large, 1)) {
			t.Fatalf("the server got %v", g)
		}
		server.send(s, NewSend(pattern(large, 2)))
		if g := client.any(); g.data != string(pattern(large, 2)) {
			t.Fatalf("the client got %v", g)
		}
	}
	client.send(c, &Close{})
	for _, side := range []*probe{server, client} {
		end := until[*Closed](side)
		if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Delivered != 3 {
			t.Errorf("closed: %v", c)
		}
	}
}
