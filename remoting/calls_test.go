package remoting_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/remoting"
)

// Calls of Admit that never return are bounded, however many names a peer invents.
func TestCallsThatDoNotReturn(t *testing.T) {
	var calls atomic.Int64
	block := make(chan struct{})
	n := start(t, remoting.Config{Peers: 2, Admit: func(remoting.Peer) error {
		calls.Add(1)
		<-block
		return nil
	}})
	t.Cleanup(func() { close(block) })
	host := start(t, remoting.Config{})
	const most = 8
	for i := range 2 * most {
		s := meetFrom(t, host, n, fmt.Sprint("asks:", i)).connect()
		s.hello()
		if i < most {
			eventually(t, "Admit is not called", func() bool { return calls.Load() == int64(i+1) })
		} else {
			time.Sleep(10 * time.Millisecond)
		}
		s.sys.Root.Send(s.link, &rdma.DestroyID{})
		eventually(t, "it is remembered", func() bool { return len(n.Peers()) == 0 })
	}
	if got := calls.Load(); got != most {
		t.Errorf("%d calls", got)
	}
}

// Calls of Admit that have returned do not count, whatever they have returned: a node that has been
// asked often goes on asking.
func TestCallsThatReturn(t *testing.T) {
	for name, admit := range map[string]func() error{
		"admits": func() error { return nil }, "refuses": func() error { return errClosed }, "panics": func() error { panic("Admit") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for a minute before it fails
			var calls atomic.Int64
			n := start(t, remoting.Config{Peers: 2, Admit: func(remoting.Peer) error {
				calls.Add(1)
				return admit()
			}})
			host := start(t, remoting.Config{})
			const most = 8 // the bound of concurrent ones
			for i := range 2 * most {
				s := meetFrom(t, host, n, fmt.Sprint("asks:", i)).connect()
				s.hello()
				eventually(t, "Admit is not called any more", func() bool { return calls.Load() == int64(i+1) })
				s.sys.Root.Send(s.link, &rdma.DestroyID{})
				eventually(t, "it is remembered", func() bool { return len(n.Peers()) == 0 })
			}
		})
	}
}
