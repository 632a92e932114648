package rpc

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

var anyFrames = flag.Int("anyframes", 50, "number of clients of TestAnyFramesOfAClient")

// drawn draws frames of a client of version 3. Most of them obey the protocol, because a violation
// ends the connection.
type drawn struct {
	*rand.Rand
	calls int // begun; each has the slot of its number
}

// handled are the methods of the server, with the flags of their calls, and one that it lacks.
var handled = []struct {
	name  string
	flags uint8
}{
	{"test.Echo", 0},
	{"test.Block", 0},
	{"test.Slow", 0},
	{"test.Nowhere", 0},
	{"test.Talk", wire.FlagStream | wire.FlagSends},
	{"test.Sum", wire.FlagSends},
	{"test.Count", wire.FlagStream},
}

func (d *drawn) frame() []byte {
	sizes := [...]int{0, 1, 5, 100, 5_000, 20_000, 66_000}
	h := wire.Header{Call: wire.CallID(max(d.calls-1-d.IntN(5), 0))} // of a call that has begun
	body := string(make([]byte, sizes[d.IntN(len(sizes))]))
	switch x := d.IntN(100); {
	case x < 35:
		h.Type, h.Number, h.Call = wire.FrameCall, uint16(d.IntN(len(handled))), wire.CallID(d.calls)
		d.calls++
		if h.Flags = handled[h.Number].flags; d.IntN(3) == 0 {
			h.Arg = uint32(1 + d.IntN(100_000))
		}
		if x > 5 {
			h.Flags |= wire.FlagFollows
			body = string(wire.AppendFollows(nil, sizes[d.IntN(len(sizes))]+d.IntN(2)*100_000))
		}
	case x < 85:
		h.Type, body = wire.FramePart, body[:min(len(body), 20_000)]
	case x < 96:
		h.Type, body = wire.FrameCancel, ""
	case x < 98:
		h.Type, h.Flags = wire.FrameItem, uint8(d.IntN(2))*wire.FlagParts
	case x < 99:
		h.Type, body = wire.FrameEnd, ""
	default:
		h.Type, h.Arg, body = wire.FrameTaken, uint32(d.IntN(20_000)), ""
	}
	return frame(h, body)
}

// Whatever a client sends, and in which order, costs its connection at most: the server goes on,
// and keeps nothing of it. More clients: go test -run TestAnyFramesOfAClient ./rpc -anyframes 2000.
func TestAnyFramesOfAClient(t *testing.T) {
	cfg := ServerConfig{MaxMessage: 128 << 10, Memory: 1 << 20, StreamWindow: 16 << 10, MaxCalls: 100, MaxCallsInAll: 16}
	for seed := range uint64(*anyFrames) {
		inWorld(t, rigConfig{server: cfg}, func(s *Server) {
			handleEcho(s)
			handleBlock(s)
			handleTalk(s)
			handleSum(s)
			handleCount(s)
			HandleRaw(s, slow, echoBytes, HandlerConfig{OnLoop: true})
		}, func(r *rig) {
			d := drawn{Rand: rand.New(rand.NewPCG(seed, 0))}
			c := r.rawClientOf(3)
			c.Ignore()
			for i, m := range handled {
				c.say(frame(wire.Header{Type: wire.FrameDeclare, Number: uint16(i)}, m.name))
			}
			for n := 0; n < 150 && len(r.s.connections()) == 2; n++ {
				switch c.say(d.frame()); d.IntN(20) {
				case 0:
					r.Advance(time.Duration(d.IntN(60)) * time.Millisecond)
				case 1, 2, 3, 4, 5:
					r.Wait()
				}
			}
			c.Send(c.id, &rdma.DestroyID{})
			r.nothingKept()
			if n := r.s.InFlight(); n != 0 {
				r.t.Errorf("%d calls are in flight", n)
			}
			r.good()
		})
		if t.Failed() {
			t.Fatalf("client %d: go test -run TestAnyFramesOfAClient ./rpc", seed)
		}
	}
}
