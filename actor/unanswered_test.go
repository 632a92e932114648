package actor

import (
	"fmt"
	"testing"
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
