package reconnect_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// sink is a server that accepts everybody and receives everything, sometimes slowly.
type sink struct {
	rand     *rand.Rand
	got      []uint64 // tags, as they came
	retained []*rdma.Received
	conn     atomic.Pointer[actor.PID] // the latest
}

type giveBack struct{}

func (s *sink) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *rdma.ConnectRequest:
		s.conn.Store(ctx.Sender())
		ctx.Respond(&rdma.Accept{})
	case *rdma.Received:
		s.got = append(s.got, binary.BigEndian.Uint64(m.Data))
		if s.rand.IntN(4) == 0 {
			s.retained = append(s.retained, m.Retain())
			rdma.After(ctx, time.Duration(s.rand.IntN(200))*time.Millisecond, &giveBack{})
		}
	case *giveBack:
		s.retained[0].Release()
		s.retained = s.retained[1:]
	}
}

// Whatever goes wrong, and whenever: every message gets one fate, and that is true; no message is
// delivered twice unless it may be; and the order is kept.
func TestEveryMessageHasOneFate(t *testing.T) {
	for seed := range uint64(60) {
		for flavor, infiniBand := range map[string]bool{"iWARP": false, "InfiniBand": true} {
			t.Run(fmt.Sprintf("%s/%d", flavor, seed), func(t *testing.T) {
				cfg := actortest.Config{Seed: seed, InfiniBand: infiniBand}
				actortest.Run(t, cfg, func(w *actortest.World) { trouble(t, w, seed) })
			})
		}
	}
}

func trouble(t *testing.T, w *actortest.World, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	far := w.Host("mem1", "10.0.0.2")
	s := &sink{rand: rand.New(rand.NewPCG(seed, 8))}
	server := w.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return s }, far.OnLoop()))
	w.T().Cleanup(func() { _ = w.System().Root.StopFuture(server).Wait() })
	root := w.System().Root
	var listener *actor.PID
	serve := func() {
		listener = far.CreateID(server, rdma.IDConfig{MaxMessage: 1 << 10, Credits: 1 + random.IntN(8)})
		root.Send(listener, &rdma.Serve{Addr: ":7471"})
	}
	serve()
	d := newDiary(w, w.Runtime())
	cfg := reconnect.Config{
		Dial: rdma.Dial{Addr: there}, Queue: 1 + random.IntN(40), FailFast: random.IntN(4) == 0,
		Backoff: reconnect.Backoff{Most: time.Second}, Rand: rand.New(rand.NewPCG(seed, 9)),
	}
	link := reconnect.Spawn(w.Runtime(), d.pid, cfg)
	w.Reorder(random.IntN(2) == 0)
	idempotent := make(map[uint64]bool)
	sent := uint64(0)
	out := map[string]bool{} // devices that are pulled out
	for range 40 {
		what := random.IntN(10)
		w.Wait()
		conn := s.conn.Load()
		switch what {
		case 0:
			if conn != nil && w.State(conn).String() == "connected" {
				w.Disconnect(conn)
			}
		case 1:
			if conn != nil {
				root.Send(conn, &rdma.DestroyID{})
			}
		case 2:
			if conn != nil {
				root.Send(conn, &rdma.Close{})
			}
		case 3:
			name := []string{"mem0", "mem1"}[random.IntN(2)]
			if out[name] {
				w.AddDevice(name)
			} else {
				w.RemoveDevice(name)
			}
			out[name] = !out[name]
		case 4:
			w.Delay(time.Duration(random.IntN(20)) * time.Millisecond)
		case 5:
			root.Send(listener, &rdma.DestroyID{})
			w.Wait()
			serve()
		}
		for range random.IntN(12) {
			sent++
			m := reconnect.NewSend(sent, binary.BigEndian.AppendUint64(nil, sent))
			m.Idempotent = random.IntN(3) == 0
			idempotent[sent] = m.Idempotent
			root.Send(link, m)
		}
		if random.IntN(3) > 0 {
			w.Advance(time.Duration(random.IntN(300)) * time.Millisecond)
		}
	}
	for name, gone := range out {
		if gone {
			w.AddDevice(name)
		}
	}
	end := []any{&reconnect.Drain{Timeout: 30 * time.Second}, &rdma.Close{}, &rdma.DestroyID{}}[random.IntN(3)]
	root.Send(link, end)
	w.Advance(time.Minute)
	d.read(w, func() { judge(t, d, s, sent, idempotent) })
}

// judge compares the owner's messages with the facts.
func judge(t *testing.T, d *diary, s *sink, sent uint64, idempotent map[uint64]bool) {
	if d.closed == nil {
		t.Fatalf("it has not closed: up %+v", d.up)
	}
	came := make(map[uint64]int)
	last := uint64(0)
	for _, tag := range s.got {
		if came[tag]++; came[tag] > 1 {
			if !idempotent[tag] {
				t.Errorf("message %d came %d times", tag, came[tag])
			}
			continue
		}
		if tag < last {
			t.Errorf("message %d came after %d", tag, last)
		}
		last = tag
	}
	final := make(map[uint64]string)
	note := func(tag uint64, what string) {
		if before, ok := final[tag]; ok {
			t.Errorf("message %d is %s and %s", tag, before, what)
		}
		final[tag] = what
	}
	var counts reconnect.Counts
	for _, f := range d.settled {
		switch {
		case f.Again && final[f.Tag] != "":
			t.Errorf("message %d is %v again after it was %s", f.Tag, f.Outcome, final[f.Tag])
		case f.Again && f.Outcome == reconnect.Delivered, f.Again && f.Outcome == reconnect.Unknown && !idempotent[f.Tag]:
			t.Errorf("message %d waits again, and is %v", f.Tag, f.Outcome)
		case !f.Again:
			note(f.Tag, f.Outcome.String())
			switch f.Outcome {
			case reconnect.Delivered:
				counts.Delivered++
			case reconnect.Unsent:
				counts.Unsent++
			case reconnect.Unknown:
				counts.Unknown++
			}
		}
	}
	for _, r := range d.refused {
		note(r.Tag, "refused")
	}
	if counts != d.closed.Counts {
		t.Errorf("closed with %+v, got %+v", d.closed.Counts, counts)
	}
	for tag := uint64(1); tag <= sent; tag++ {
		switch final[tag] {
		case "delivered":
			if came[tag] == 0 {
				t.Errorf("message %d has not come, and is said to be delivered", tag)
			}
		case "unsent", "refused":
			if came[tag] > 0 {
				t.Errorf("message %d has come, and is said to be %s", tag, final[tag])
			}
		case "unknown":
		default:
			t.Fatalf("message %d of %d has no fate; %+v", tag, sent, d.closed)
		}
	}
}
