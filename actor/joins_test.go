package actor

import (
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
)

// Of two simultaneous joins each is answered to its sender, and no deadline takes the identifier
// for stuck.
func TestTwoJoinsAtOnce(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		owner, other := w.probe(), w.probe()
		id := w.rt.CreateID(owner.pid, IDConfig{PortSpace: cmid.PortSpaceUDP})
		owner.send(id, &cmid.BindAddr{Addr: MustAddr(here + ":0")})
		next[*cmid.Bound](owner)
		other.send(id, &cmid.JoinMulticast{Addr: MustAddr("239.1.1.1:0")})
		owner.send(id, &cmid.JoinMulticast{Addr: MustAddr("239.1.1.2:0")})
		for p, group := range map[*probe]string{other: "239.1.1.1:0", owner: "239.1.1.2:0"} {
			if j, _ := next[*cmid.MulticastJoin](p); j.Addr != MustAddr(group) {
				w.Errorf("%v answers the join of %v", j, group)
			}
		}
		time.Sleep(20 * time.Second)
		if s, ok := w.state(id); !ok {
			w.Errorf("the identifier is gone (%v)", s)
		}
	})
}
