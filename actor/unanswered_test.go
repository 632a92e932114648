package actor

import (
	"fmt"
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
)

// Listeners whose owners answer nothing leave room for the requests of the others.
func TestPendingRequestsAreShared(t *testing.T) {
	onFlavors(t, func(w *world) {
		deaf, client := w.farProbe(), w.probe()
		dial := func(port, n int) {
			for range n {
				client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: fmt.Sprintf("%s:%d", there, port)})
			}
			settle()
		}
		count := func(p *probe) (n int) {
			for ; len(p.got) > 0; n++ {
				next[*ConnectRequest](p)
			}
			return n
		}
		listen(deaf, w.far, there+":7471")
		listen(deaf, w.far, there+":7472")
		dial(7471, 40)
		if n := count(deaf); n != 16 {
			w.Errorf("the first listener has %d of 32 requests, want half of what is not kept, and one", n)
		}
		dial(7472, 40)
		if n := count(deaf); n != 8 {
			w.Errorf("the second has %d, want half of what the first leaves, and one", n)
		}
		awake := w.farProbe()
		listen(awake, w.far, there+":7473")
		for range 3 {
			dial(7473, 1)
			_, s := next[*ConnectRequest](awake)
			awake.send(s, &Accept{})
			next[*Established](awake)
		}
	}, Config{Limits: Limits{PendingRequests: 32}})
}

// Whoever comes after any number of greedy ones finds what is kept for it, and what is answered is
// free again.
func TestPendingFloor(t *testing.T) {
	const limit = 1024
	var u unanswered
	greedy := func(listener cmid.Handle) (n int) {
		for ; u.may(listener, limit); n++ {
			u.add(listener, 1)
		}
		return n
	}
	for listener := range cmid.Handle(20) {
		if greedy(listener) == 0 {
			t.Fatalf("listener %d may have none", listener)
		}
	}
	if left := limit - u.all; left < limit/unansweredKept/2 {
		t.Fatalf("20 greedy listeners leave %d of %d", left, limit)
	}
	for listener, n := range u.of {
		u.add(listener, -n)
	}
	if u.all != 0 || len(u.of) != 0 {
		t.Errorf("%d are counted, of %v, when all are answered", u.all, u.of)
	}
	if n := greedy(0); n != (limit-limit/unansweredKept)/2+1 {
		t.Errorf("alone a listener may have %d of %d", n, limit)
	}
}
