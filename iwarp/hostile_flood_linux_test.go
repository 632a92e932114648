package iwarp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hostile"
)

// TestHostileMemory: during a flood the heap does not grow, except by what a connection may occupy.
func TestHostileMemory(t *testing.T) {
	const (
		short = 300 * time.Millisecond
		bound = 256 << 10 // the flooding peer is in this process, too
	)
	a := newArena(t, func(c *Config) { c.UserTimeout = short })
	for _, x := range hostile.All() {
		unread := strings.Contains(x.Name, "nobody reads")
		if !unread && !strings.Contains(x.Name, "flood") && !strings.Contains(x.Name, "MiB") && !strings.Contains(x.Name, "more Reads") {
			continue
		}
		for _, side := range sides(x) {
			t.Run(fmt.Sprintf("%s/side %d", x.Name, side), func(t *testing.T) {
				a.on(t)
				room := uint64(bound)
				a.regionLen = hostile.RegionLen
				if unread {
					a.regionLen = 8 << 20
					room += 6 * 8 << 20
				}
				before, peak, turns := heapNow(), uint64(0), 0
				a.each = func() {
					if turns++; turns%64 == 0 || turns&(turns-1) == 0 {
						peak = max(peak, heapNow())
					}
				}
				got := a.attack(x, side, hostile.Options{})
				a.each = nil
				a.judge(x, got)
				if peak > before+room {
					t.Errorf("%d bytes of heap while it lasted, %d before", peak, before)
				}
				t.Logf("%d KiB more at most, in %d turns", (int64(peak)-int64(before))>>10, turns)
				a.clean()
			})
		}
	}
}

// TestSetupFlood: at most MaxSetups connections exist whose peers send nothing, or half a Request.
// A good connection that comes after all of them has to wait, but does not fail. In the end all of
// them are closed.
func TestSetupFlood(t *testing.T) {
	const most, peers = 16, 160
	for what, say := range map[string][]byte{"silent": nil, "half a Request": request("")[:21]} {
		t.Run(what, func(t *testing.T) {
			a := newArena(t, func(c *Config) { c.MaxSetups, c.RequestTimeout = most, time.Second })
			a.each = func() {
				if in := a.server.in; in.setups.n > most || in.conns > most+2 {
					a.t.Fatalf("%d set-ups, %d sockets, want %d set-ups", in.setups.n, in.conns, most)
				}
			}
			var crowd []*raw
			for range peers {
				crowd = append(crowd, rawDial(t, a.at))
				if say != nil {
					crowd[len(crowd)-1].write(say)
				}
				a.turn()
			}
			a.good()
			a.until("the crowd's end", func() bool { return over(crowd) == peers })
			a.good()
			a.clean()
		})
	}
}

// over counts the peers whose connection was ended, and closes those.
func over(crowd []*raw) int {
	n := 0
	for _, r := range crowd {
		if r.over || r.ended() {
			r.close()
			n++
		}
	}
	return n
}

// TestConnFlood: there are never more than MaxConns connections. When some end, there is room
// again.
func TestConnFlood(t *testing.T) {
	const most = 12
	a := newArena(t, func(c *Config) { c.MaxConns = most })
	a.each = func() {
		if a.server.in.conns > most || len(a.server.in.ids) > most+1 {
			a.t.Fatalf("%d sockets, %d identifiers, want %d", a.server.in.conns, len(a.server.in.ids), most)
		}
	}
	var crowd []*raw
	for i := range 100 {
		r := rawDial(t, a.at)
		_, _ = unix.Write(r.fd, request(fmt.Sprint(i))) // it may be closed already
		crowd = append(crowd, r)
		a.turn()
	}
	// one is steady
	a.until("the ones above the limit", func() bool { return over(crowd) == 100-(most-1) })
	for _, r := range crowd {
		r.close()
	}
	a.until("their end", func() bool { a.bury(); return a.delivered() })
	clear(a.victims)
	a.good()
	a.clean()
}

// TestChurn: two thousand connections that end as soon as they are made.
func TestChurn(t *testing.T) {
	a := newArena(t)
	for i := range 2000 {
		r := rawDial(t, a.at)
		if i%3 == 0 {
			r.write(request("")[:i%24])
		}
		if i%2 == 0 {
			r.reset()
		} else {
			r.close()
		}
		if i%8 == 0 {
			a.turn()
		}
	}
	a.good()
	a.clean()
}

// TestHostileStorm: every hostile peer that can dial connects at the same time, with CRC and
// without. Good peers in between are all served.
func TestHostileStorm(t *testing.T) {
	a := newArena(t)
	callers := hostile.Callers()
	done := make(chan hostile.Result, 2*len(callers))
	for _, x := range callers {
		for _, crc := range []bool{false, true} {
			go func() {
				r, err := x.Dial(t.Context(), fmt.Sprintf("127.0.0.1:%d", a.at.Port()), hostile.Options{CRC: crc})
				if err != nil {
					r.Wrong = err.Error()
				}
				if r.Wrong != "" {
					r.Wrong = x.Name + ": " + r.Wrong
				}
				done <- r
			}()
		}
	}
	for range 20 {
		a.good()
		a.bury()
	}
	left := cap(done)
	a.until("the end of all", func() bool {
		a.bury()
		select {
		case r := <-done:
			left--
			if r.Wrong != "" {
				t.Error(r.Wrong)
			}
		default:
		}
		return left == 0
	})
	a.until("what is reported of them", func() bool { a.bury(); return a.delivered() })
	t.Logf("%d hostile peers, %d of them accepted", cap(done), len(a.victims))
	for _, v := range a.victims {
		if v.refused == nil && ends(v.end().kind) != 1 {
			t.Errorf("got %v, want one end", v.delivered)
		}
	}
	clear(a.victims)
	a.clean()
}
