package remoting_test

import (
	"sync"
	"testing"

	"github.com/rdmactor/rdmactor/remoting"
)

// What finds no room beside a subscriber that is too slow is dropped. The subscriber gets to know
// how much that was, when it has caught up.
func TestUnreported(t *testing.T) {
	const small, n = 64 << 10, 2000
	b := start(t, remoting.Config{Queue: small, MaxMessage: small})
	a := start(t, remoting.Config{Overflow: remoting.Block})
	block := make(chan struct{})
	var mu sync.Mutex
	var refused, dropped int
	sub := b.sys.EventStream.Subscribe(func(ev any) {
		<-block
		mu.Lock()
		defer mu.Unlock()
		switch m := ev.(type) {
		case *remoting.Refused:
			refused++
		case *remoting.Unreported:
			dropped += int(m.Count)
			if m.Peer.Name != a.Name() {
				t.Errorf("%v", m)
			}
		}
	})
	defer b.sys.EventStream.Unsubscribe(sub)
	pid := b.pid("nobody may reach this")
	for range n {
		a.sys.Root.Send(pid, text("x"))
	}
	eventually(t, "not all came", func() bool { return b.info(a).Counts.Received == n })
	// It is counted behind Received.
	unreported := func() int { return int(b.info(a).Counts.Unreported) }
	if unreported() == 0 {
		t.Error("all had room")
	}
	close(block)
	eventually(t, "some are neither reported nor said to be dropped", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return refused+dropped == n && dropped == unreported()
	})
}
