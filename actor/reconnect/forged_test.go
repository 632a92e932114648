package reconnect_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// forger sends a node requests with whatever private data.
type forger struct {
	w   *actortest.World
	rt  *rdma.Runtime
	pid *actor.PID
	ids []*actor.PID
}

func newForger(w *actortest.World, rt *rdma.Runtime) *forger {
	f := &forger{w: w, rt: rt}
	f.pid = w.System().Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, rt.OnLoop()))
	w.T().Cleanup(func() { _ = w.System().Root.StopFuture(f.pid).Wait() })
	return f
}

func (f *forger) request(to string, private []byte) {
	id := f.rt.CreateID(f.pid)
	f.ids = append(f.ids, id)
	f.w.System().Root.Send(id, &rdma.Dial{Addr: to, PrivateData: private})
}

// ends gives up all connections.
func (f *forger) ends() {
	for _, id := range f.ids {
		f.w.System().Root.Send(id, &rdma.DestroyID{})
	}
}

// forged returns private data as nodes have it, of b's or of others', and perhaps changed or cut.
func forged(r *rand.Rand) []byte {
	pick := func(of ...uint64) uint64 { return of[r.IntN(len(of))] }
	b := binary.BigEndian.AppendUint16(nil, 0x7EDC)
	b = append(b, 1, byte(pick(0, 0, 0, 0, 1, 2, 3, 4, 5, 200)))
	b = binary.BigEndian.AppendUint64(b, pick(1, 2, 2, 2, 2, 3, 0))
	b = binary.BigEndian.AppendUint64(b, pick(0, 1, 1, 2, 1<<63, 1<<64-1))
	b = binary.BigEndian.AppendUint32(b, uint32(pick(0, 1, 2, 3, 1<<31, 1<<32-1)))
	switch r.IntN(6) {
	case 0:
		b = b[:r.IntN(len(b))]
	case 1:
		b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
	}
	return b
}

// While two nodes dial each other, requests come with private data that is forged, cut, of other
// incarnations and repeated: from elsewhere, which never takes the connection of the two while it
// lasts, and from their own addresses. When these have ended the two have one connection.
func TestForgedRequests(t *testing.T) {
	const seeds = 60
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			cfg := onLoops(1 + int(seed%3))
			cfg.InfiniBand = seed%2 == 0
			actortest.Run(t, cfg, func(w *actortest.World) {
				r := rand.New(rand.NewPCG(seed, 15))
				a, b := pair(w, seed%4 < 2)
				a.listen()
				b.listen()
				w.Delay(time.Duration(r.IntN(3)) * time.Millisecond)
				forgers := []*forger{newForger(w, w.Host("mem2", "10.0.0.3")), newForger(w, b.rt), newForger(w, a.rt)}
				last := forged(r)
				for step := range 40 {
					switch f := forgers[r.IntN(len(forgers))]; {
					case step == 5:
						a.dial()
					case step == 5+int(seed%9):
						b.dial()
					default:
						if r.IntN(3) > 0 {
							last = forged(r)
						}
						f.request([]string{at(1), at(2)}[r.IntN(2)], last)
					}
					w.Advance(time.Duration(r.IntN(4)) * time.Millisecond)
				}
				if b.link == nil {
					b.dial()
				}
				for _, f := range forgers {
					f.ends()
				}
				w.Advance(time.Minute)
				one(t, w, a, b)
				downs := len(a.diary.downs)
				for range 20 { // from elsewhere
					forgers[0].request(at(1), forged(r))
					w.Advance(time.Duration(r.IntN(4)) * time.Millisecond)
				}
				w.Advance(time.Second)
				one(t, w, a, b)
				if n := len(a.diary.downs) - downs; n != 0 {
					t.Errorf("it was taken away %d times", n)
				}
				forgers[0].ends()
			})
		})
	}
}
