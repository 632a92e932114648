//go:build linux && rdma

package actor

import (
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/actor/internal/datapath"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// Messages beyond the eager limit, in both directions at a time, with less memory than they all
// take: the same bytes in order.
func TestKernelLarge(t *testing.T) {
	leavesNothing(t)
	kernelLarge(t, 6, IDConfig{Credits: 16})
}

// kernelLarge sends a number of rounds of all sizes on two connections.
func kernelLarge(t *testing.T, rounds int, cfg IDConfig) {
	t.Helper()
	const most = 4 << 20
	sizes := []int{datapath.EagerPosted, datapath.EagerPosted + 1, 1 << 20, 100, most, 3<<20 + 5, 0}
	rt := openKernel(t, testSystem(t), Config{Limits: Limits{ReceiveMemory: 24 << 20, SendMemory: 16 << 20}})
	cfg.MaxMessage = most
	at := serveKernel(t, rt, env(t, "RDMA_ADDR")+":0", cfg)
	p := newProbe(t, rt.sys, rt.OnLoop(), nil)
	ids := make(map[string]int) // echoes that each has got
	var dialled []*actor.PID
	for range 2 {
		id := rt.CreateID(p.pid, cfg)
		p.send(id, &Dial{Addr: at})
		if e, _ := next[*Established](p); e.MaxMessage != most {
			t.Fatalf("the peer takes %d bytes", e.MaxMessage)
		}
		dialled, ids[id.Id] = append(dialled, id), 0
	}
	for _, id := range dialled {
		for i := range rounds * len(sizes) {
			m := NewSendBuffer(sizes[i%len(sizes)])
			copy(m.Bytes(), pattern(m.Len(), i))
			p.send(id, m)
		}
	}
	for range 2 * rounds * len(sizes) {
		g := p.any()
		i := ids[g.sender.Id]
		if want := pattern(sizes[i%len(sizes)], i); g.data != string(want) {
			t.Fatalf("echo %d is %T with %d bytes, want %d others", i, g.msg, len(g.data), len(want))
		}
		ids[g.sender.Id]++
	}
	for _, id := range dialled {
		p.send(id, &Close{})
	}
	for range ids {
		end := until[*Closed](p)
		if c := end[len(end)-1].msg.(*Closed); c.Err != nil || c.Delivered != uint64(rounds*len(sizes)) {
			t.Errorf("the end: %v, %d delivered, %d unsent", c.Err, c.Delivered, c.Unsent)
		}
	}
}

// An offer of memory that was never registered ends the connection it came on, with an error, and
// no other.
func TestKernelHostileOffer(t *testing.T) {
	leavesNothing(t)
	rt := openKernel(t, testSystem(t))
	server := newProbe(t, rt.sys, rt.OnLoop(), func(ctx actor.Context) {
		if _, ok := ctx.Message().(*ConnectRequest); ok {
			ctx.Respond(&Accept{})
		}
	})
	_, at := listen(server, rt, env(t, "RDMA_ADDR")+":0", IDConfig{MaxMessage: 1 << 20, Credits: 4})
	mallory := newProbe(t, rt.sys, rt.OnLoop(), nil)
	id := rt.CreateID(mallory.pid, IDConfig{Raw: true})
	mallory.send(id, &Dial{Addr: at, PrivateData: wire.Hello{Credits: 4, Eager: kib, MaxMessage: kib}.Put(nil)})
	next[*Established](mallory)
	b := make([]byte, wire.HeaderLen+wire.OfferLen)
	wire.Header{Type: wire.TypeOffer}.Put(b)
	wire.Offer{Length: 1 << 16, Key: 0xbad00, Addr: 0x7f0000000000}.Put(b[wire.HeaderLen:])
	mallory.send(id, NewSend(b))
	end := until[*Closed](server)
	// siw does not report it
	if c := end[len(end)-1].msg.(*Closed); c.Err == nil && !strings.HasPrefix(env(t, "RDMA_DEVICE"), "siw") {
		t.Errorf("the end: %v", end)
	}
	until[*Closed](mallory)
}
