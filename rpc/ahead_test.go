package rpc

import (
	"context"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Large messages are sent quickly over long distances, in both directions: a round trip carries
// many parts.
func TestLargeMessagesOverALongDistance(t *testing.T) {
	large := make([]byte, 4<<20-wire.HeaderLen)
	const oneWay, roundTrips = time.Millisecond, 25
	for name, sizes := range map[string][2]int{"request": {len(large), 0}, "answer": {0, len(large)}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rigConfig{}, func(s *Server) {
				HandleRaw(s, echo, func(context.Context, []byte, []byte) ([]byte, error) { return large[:sizes[1]], nil })
			}, func(r *rig) {
				r.Latency(there, oneWay)
				began := r.Elapsed()
				if got, err := CallRaw(r.t.Context(), r.c, echo, large[:sizes[0]], nil); err != nil || len(got) != sizes[1] {
					r.t.Fatal(len(got), err)
				}
				if took, most := r.Elapsed()-began, roundTrips*2*oneWay; took > most {
					r.t.Errorf("it has taken %v, want at most %v", took, most)
				}
			})
		})
	}
}

// formerAhead is how many bytes of parts former versions of this package sent ahead.
const formerAhead = 32 << 10

// A peer that sends as few bytes ahead as former versions did gets them confirmed, on either side.
func TestFormerPeersAreConfirmed(t *testing.T) {
	piece := string(make([]byte, formerAhead/2))
	t.Run("client", func(t *testing.T) {
		inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
			c := r.rawClientOf(3)
			c.say(declareEcho, announce(wire.Header{Call: 1}, 100<<10), part(1, piece), part(1, piece))
			if h, _ := c.answer(r.t); h.Type != wire.FrameTaken {
				r.t.Errorf("answered with %+v", h)
			}
		})
	})
	t.Run("server", func(t *testing.T) {
		inHand(t, ClientConfig{}, func(h *handReader) {
			ended := make(chan error, 1)
			go func() { _, err := CallRaw(h.T().Context(), h.c, echo, nil, nil); ended <- err }()
			h.Wait()
			h.say(part(wire.NewCallID(0, 1), piece), part(wire.NewCallID(0, 1), piece))
			h.Wait()
			if types, _ := h.types(); types[len(types)-1] != wire.FrameTaken {
				h.T().Errorf("%v have come", types)
			}
			h.c.Close()
			<-ended
		})
	})
}

// However many streams send large items, the client keeps few of them for a server that does not
// read: Send waits.
func TestLargeItemsOfManyStreams(t *testing.T) {
	const streams, size = 40, 1 << 20
	inWorld(t, rigConfig{}, handleTalk, func(r *rig) {
		dialogs := make([]*Dialog[Bytes, Bytes], streams)
		for i := range dialogs {
			var err error
			if dialogs[i], err = OpenBidiStream(r.t.Context(), r.c, talk); err != nil {
				r.t.Fatal(err)
			}
		}
		r.Wait()
		l := r.c.link()
		r.Freeze("mem1")
		sent := make(chan error, streams)
		for _, d := range dialogs {
			item := make(Bytes, size)
			go func() { sent <- d.Send(&item) }()
			r.Wait()
		}
		l.out.mu.Lock()
		if n := l.out.totalLocked(); n > highWater+2*size || len(sent) > 3 {
			r.t.Errorf("%d bytes of items are kept, and %d were taken", n, len(sent))
		}
		l.out.mu.Unlock()
		r.Thaw("mem1")
		for i, d := range dialogs {
			if got, err := d.Receive(); err != nil || len(*got) != size {
				r.t.Errorf("the item of stream %d: %v", i, err)
			}
			if err := <-sent; err != nil {
				r.t.Error(err)
			}
			d.Close()
		}
	})
}
