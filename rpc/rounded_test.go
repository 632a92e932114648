package rpc

import (
	"testing"

	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// Both sides agree on the largest message in whole KiB. A message between a limit
// as it was set and as it was rounded does not end the connection, because the peer may send it.
func TestMaxMessageIsRounded(t *testing.T) {
	const raw, rounded = 100_000, 98 << 10
	for name, cfg := range map[string]rigConfig{
		"server": {server: ServerConfig{MaxMessage: raw}, client: ClientConfig{MaxMessage: 1 << 20}},
		"client": {server: ServerConfig{MaxMessage: 1 << 20}, client: ClientConfig{MaxMessage: raw}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, cfg, func(s *Server) {
				handleEcho(s)
				handleTalk(s)
			}, func(r *rig) {
				l := r.c.link()
				for _, n := range []int{raw - wire.HeaderLen, raw, rounded - wire.HeaderLen} {
					if got, err := CallRaw(r.t.Context(), r.c, echo, make([]byte, n), nil); err != nil || len(got) != n {
						r.t.Errorf("a request of %d bytes: %d, %v", n, len(got), err)
					}
					d, err := OpenBidiStream(r.t.Context(), r.c, talk)
					if err != nil {
						r.t.Fatal(err)
					}
					item := make(Bytes, n)
					if err := d.Send(&item); err != nil {
						r.t.Error(err)
					}
					if got, err := d.Receive(); err != nil || len(*got) != n {
						r.t.Errorf("an item of %d bytes: %v", n, err)
					}
					d.Close()
				}
				_, err := CallRaw(r.t.Context(), r.c, echo, make([]byte, rounded-wire.HeaderLen+1), nil)
				want(r.t, err, ErrTooLarge, map[string]Fate{"server": FateNotSent, "client": FateAnswered}[name])
				if r.c.link() != l {
					r.t.Error("the connection has ended")
				}
			})
		})
	}
}

// A request that is sent whole may have the same size.
func TestMaxMessageOfVersion2IsRounded(t *testing.T) {
	inWorld(t, rigConfig{server: ServerConfig{MaxMessage: 50_000}}, handleEcho, func(r *rig) {
		c := r.rawClientOf(2)
		c.say(declareEcho, frame(wire.Header{Type: wire.FrameCall}, string(make([]byte, 50_100))))
		if h, body := c.answer(r.t); h.Type == wire.FrameError {
			r.t.Errorf("answered with %+v %q", h, body)
		}
	})
}
