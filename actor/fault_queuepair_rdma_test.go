//go:build linux && rdma

package actor

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// rawPair connects two owners on an address of the device, without the message protocol.
func rawPair(t *testing.T, rt *Runtime, addr string, serve ...IDOption) pair {
	t.Helper()
	p := pair{client: newProbe(t, rt.sys, rt.OnLoop(), nil), server: newProbe(t, rt.sys, rt.OnLoop(), nil)}
	lis, at := listen(p.server, rt, addr+":0", append(serve, Raw())...)
	p.listener, p.c = lis, rt.CreateID(p.client.pid, Raw())
	p.client.send(p.c, &Dial{Addr: at})
	_, p.s = next[*ConnectRequest](p.server)
	p.server.send(p.s, &Accept{})
	next[*Established](p.server)
	next[*Established](p.client)
	return p
}

// endOf is the cause of the next end that p is told, which is told once.
func endOf(t *testing.T, p *probe) error {
	t.Helper()
	var told []got
	for _, g := range until[*Closed](p) {
		switch g.msg.(type) {
		case *Disconnected, *Closed:
			told = append(told, g)
		}
	}
	if k := kinds(told); k != "Disconnected Closed" {
		t.Fatalf("told %v", told)
	}
	return told[1].msg.(*Closed).Err
}

// A message longer than its receive ends the connection, and both sides are told why.
func TestFaultRawMessageTooLong(t *testing.T) {
	leavesNothing(t)
	rt := openKernel(t, testSystem(t))
	p := rawPair(t, rt, env(t, "RDMA_ADDR"), WithMessages(1<<10, 4))
	p.client.send(p.c, NewSend(make([]byte, 4<<10)))
	var q *QueuePairError
	if err := endOf(t, p.server); !errors.As(err, &q) {
		t.Errorf("the receiver is told %v", err)
	} else {
		t.Logf("the receiver is told: %v", err)
	}
	err := endOf(t, p.client)
	if env(t, "RDMA_KIND") == "rxe" && !errors.As(err, &q) { // siw's peer has a Terminate message's words at best
		t.Errorf("the sender is told %v", err)
	}
	t.Logf("the sender is told: %v", err)
}

// An address that goes from under a connection: on rxe the next message fails, and with it the connection; iWARP's TCP waits for the
// address to come back.
func TestFaultAddressGoesUnderAnOwner(t *testing.T) {
	leavesNothing(t)
	rt := openKernel(t, testSystem(t))
	ip, netdev := env(t, "RDMA_ADDR2"), env(t, "RDMA_NETDEV")
	address := func(what string) {
		t.Helper()
		if out, err := exec.Command("ip", "addr", what, ip+"/24", "dev", netdev).CombinedOutput(); err != nil && !strings.Contains(string(out), "exists") {
			t.Fatalf("ip addr %s: %v: %s", what, err, out)
		}
	}
	p := rawPair(t, rt, ip)
	p.client.send(p.c, NewSend([]byte("before")))
	next[*Received](p.server)
	address("del")
	defer address("add")
	p.client.send(p.c, NewSend([]byte("during")))
	if env(t, "RDMA_KIND") == "siw" {
		address("add")
		next[*Received](p.server)
		return
	}
	begin := time.Now()
	g := until[*Disconnected](p.client)
	var q *QueuePairError
	if err := g[len(g)-1].msg.(*Disconnected).Err; !errors.As(err, &q) {
		t.Errorf("told %v", err)
	} else {
		t.Logf("told after %v: %v", time.Since(begin), err)
	}
	address("add")
	until[*Closed](p.client)
}
