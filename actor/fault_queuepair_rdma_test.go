//go:build linux && rdma

package actor

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/verbs"
)

// rawPair connects two owners on an address of the device, without the message protocol.
func rawPair(t *testing.T, rt *Runtime, addr string, serve IDConfig) pair {
	t.Helper()
	serve.Raw = true
	p := pair{client: newProbe(t, rt.sys, rt.OnLoop(), nil), server: newProbe(t, rt.sys, rt.OnLoop(), nil)}
	lis, at := listen(p.server, rt, addr+":0", serve)
	p.listener, p.c = lis, rt.CreateID(p.client.pid, IDConfig{Raw: true})
	p.client.send(p.c, &Dial{Addr: at})
	_, p.s = next[*ConnectRequest](p.server)
	p.server.send(p.s, &Accept{})
	next[*Established](p.server)
	next[*Established](p.client)
	return p
}

// endOf returns the cause of the next end that p gets, which is reported once.
func endOf(t *testing.T, p *probe) error {
	t.Helper()
	var ended []got
	for _, g := range until[*Closed](p) {
		switch g.msg.(type) {
		case *Disconnected, *Closed:
			ended = append(ended, g)
		}
	}
	if k := kinds(ended); k != "Disconnected Closed" {
		t.Fatalf("got %v", ended)
	}
	return ended[1].msg.(*Closed).Err
}

// A message longer than its receive ends the connection, and both sides learn why.
func TestFaultRawMessageTooLong(t *testing.T) {
	leavesNothing(t)
	rt := openKernel(t, testSystem(t))
	p := rawPair(t, rt, env(t, "RDMA_ADDR"), IDConfig{MaxMessage: 1 << 10, Credits: 4})
	p.client.send(p.c, NewSend(make([]byte, 4<<10)))
	var q *QueuePairError
	if err := endOf(t, p.server); !errors.As(err, &q) {
		t.Errorf("the receiver gets %v", err)
	} else {
		t.Logf("the receiver gets: %v", err)
	}
	err := endOf(t, p.client)
	// siw's peer knows at best the contents of a Terminate message
	if env(t, "RDMA_KIND") == "rxe" && !errors.As(err, &q) {
		t.Errorf("the sender gets %v", err)
	}
	t.Logf("the sender gets: %v", err)
}

// A peer stops acknowledging, as behind a network that is cut: its queue pair is destroyed without
// notice to the other side. Later messages of the client are repeated until its device gives up.
// The server's loop is blocked during that time, or it would notice as well. (With a RetryCount of
// 7 rxe never gives up.) siw's peer sees its stream end.
func TestFaultPeerAcknowledgesNothing(t *testing.T) {
	leavesNothing(t)
	rt := openKernel(t, testSystem(t))
	far := openKernel(t, rt.sys)
	p := pair{client: newProbe(t, rt.sys, rt.OnLoop(), nil), server: newProbe(t, rt.sys, far.OnLoop(), nil)}
	lis, at := listen(p.server, far, env(t, "RDMA_ADDR")+":0")
	p.listener, p.c = lis, rt.CreateID(p.client.pid, IDConfig{})
	p.client.send(p.c, &Dial{Addr: at, Param: &ConnParam{RetryCount: 2, RNRRetryCount: 7, ResponderResources: 1, InitiatorDepth: 1}})
	_, p.s = next[*ConnectRequest](p.server)
	p.server.send(p.s, &Accept{})
	next[*Established](p.server)
	next[*Established](p.client)
	goOn := far.vanish(t, p.s)
	defer goOn()
	begin := time.Now()
	p.client.send(p.c, NewSend([]byte("you there?")))
	err := endOf(t, p.client)
	goOn()
	t.Logf("failed within %v: %v", time.Since(begin), err)
	is(t, err, ErrPeerLost)
	var q *QueuePairError
	if env(t, "RDMA_KIND") == "rxe" && (!errors.As(err, &q) || q.Status != verbs.StatusRetryExc) {
		t.Errorf("the end is %v, want %v", err, verbs.StatusRetryExc)
	}
	until[*Closed](p.server)
}

// vanish destroys the queue pair of an identifier without a word to its peer, and blocks its loop
// until goOn is called.
func (rt *Runtime) vanish(t *testing.T, id *actor.PID) (goOn func()) {
	t.Helper()
	gone, ended := make(chan error, 1), make(chan struct{})
	goOn = sync.OnceFunc(func() { close(ended) })
	if err := rt.loops[0].el.Post(func() {
		for it := range rt.loops[0].ids {
			if it.pid.Equal(id) {
				gone <- it.conn.QP.Destroy()
			}
		}
		<-ended
	}); err != nil {
		t.Fatal(err)
	}
	if err := <-gone; err != nil {
		goOn()
		t.Fatal(err)
	}
	return goOn
}
