package rpc

import (
	"bytes"
	"context"
	"testing"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Requests that wait until answers are sent are handled even if these are sent immediately. No
// later event would trigger that.
func TestAnswersThatGoAtOnce(t *testing.T) {
	const n = 2*highWater/(60<<10) + 1
	answer := bytes.Repeat([]byte("x"), 60<<10)
	inWorld(t, rigConfig{}, func(s *Server) {
		HandleRaw(s, echo, func(context.Context, []byte, []byte) ([]byte, error) { return answer, nil }, HandlerConfig{OnLoop: true})
	}, func(r *rig) {
		c := r.rawClient()
		frames := [][]byte{declareEcho}
		for i := range n {
			frames = append(frames, frame(wire.Header{Type: wire.FrameCall, Call: wire.NewCallID(i, 1)}, ""))
		}
		c.say(frames...)
		for i := range n {
			if h, got := c.answer(r.t); h.Type != wire.FrameReply || h.Call.Slot() != i || got != string(answer) {
				r.t.Fatalf("call %d was answered with a frame of type %d and %d bytes", i, h.Type, len(got))
			}
		}
	})
}

// A gathered message does not exceed the peer's limit.
func TestGathersWhatThePeerTakes(t *testing.T) {
	for name, cfg := range map[string]rigConfig{
		"a client that takes little": {client: ClientConfig{MaxMessage: 4 << 10}},
		"a server that takes little": {server: ServerConfig{MaxMessage: 4 << 10}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cfg, handleEcho, func(r *rig) {
				errs := make(chan error, 64)
				for range cap(errs) {
					go func() {
						_, err := CallRaw(r.t.Context(), r.c, echo, make([]byte, 1<<10), nil)
						errs <- err
					}()
				}
				for range cap(errs) {
					if err := <-errs; err != nil {
						r.t.Fatal(err)
					}
				}
			})
		})
	}
}

// Frames that wait occupy little more memory than they are counted with, also if the peer takes
// only small messages: ServerConfig.Memory limits what clients do not take.
func TestGatheredFramesTakeLittleMore(t *testing.T) {
	for _, most := range []int{1 << 10, 2 << 10, 5 << 10, gatherBytes} {
		for _, n := range []int{40, 600, 1 << 10, 4 << 10} {
			var o out
			if o.establishedLocked(most); n > most {
				continue
			}
			for o.bytes < highWater {
				o.frameLocked(n)
			}
			taken := cap(o.cur)
			for _, seg := range o.full {
				taken += cap(seg.frames)
			}
			if taken > 2*o.bytes+gatherBytes {
				t.Errorf("frames of %d bytes in messages of %d take %d bytes, and count as %d", n, most, taken, o.bytes)
			}
		}
	}
}
