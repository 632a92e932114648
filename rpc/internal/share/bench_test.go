package share

import (
	"net/netip"
	"testing"
)

// BenchmarkGiveCall returns a place while calls of 1,000 addresses wait: all but the last one run
// another call, so that only the last one may have the place; or none does.
func BenchmarkGiveCall(b *testing.B) {
	const addrs = 1000
	for name, running := range map[string]bool{"AllRun": true, "NoneRuns": false} {
		b.Run(name, func(b *testing.B) {
			total := Amounts{Calls: addrs, Waiting: 4 * addrs}
			a := New(total, total, longest)
			holder := new(Conn)
			holder.Join(a, netip.MustParseAddr("::1"))
			var conns []*Conn
			for i := range addrs {
				c := new(Conn)
				c.Join(a, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
				conns = append(conns, c)
			}
			for i, c := range conns {
				if running && i < addrs-1 {
					c.addLocked(Calls, 1)
				}
			}
			for a.used[Calls] < addrs {
				holder.addLocked(Calls, 1)
			}
			waiters := make([]Waiter, addrs)
			for i, c := range conns {
				c.addLocked(Waiting, 1)
				waiters[i].Call = c
				c.Await(&waiters[i])
			}
			last := holder
			for b.Loop() {
				w := last.GiveCall()
				if w == nil {
					b.Fatal("no call got the place")
				}
				last = w.Call.(*Conn)
				last.addLocked(Waiting, 1)
				last.Await(w)
				if running { // the address that got the place gives it back, and waits again
					last.addLocked(Calls, -1)
					holder.addLocked(Calls, 1)
					last = holder
				}
			}
		})
	}
}
