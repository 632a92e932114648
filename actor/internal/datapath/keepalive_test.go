package datapath

import (
	"testing"

	"github.com/rdmactor/rdmactor/verbs"
)

// signals is a queue pair whose peer's messages wait, and that counts what is sent.
type signals struct {
	verbs.Pauser
	sent int
}

func (q *signals) Waiting() bool                   { return true }
func (q *signals) PostSend(wr *verbs.SendWR) error { q.sent++; return nil }

// A peer whose messages wait here gets signs of life also while a Read of ours is under way, whose
// answer waits with them. Signs complete behind the Read, so they take no more than half of the
// send queue. Behind something that the peer does not take in there are none.
func TestSignsBehindARead(t *testing.T) {
	const depth = 16
	for _, tt := range []struct {
		name     string
		fetching int32
		want     int
	}{
		{"a Read is under way", 1, depth/2 - 1},
		{"a message has not left", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := paperShares(t, 1<<20)
			c, _, _ := s.holder(ModeMessages)
			qp := new(signals)
			c.QP, c.In.qp, c.In.fetching, c.Out.Flight.Depth = qp, qp, tt.fetching, depth
			c.Device, c.res.dom = &Device{l: s.l, attr: verbs.DeviceAttr{MaxInline: 64}}, new(domain)
			c.Out.Flight.Push(Posting{})
			for range looksIdle {
				c.Beat.lookAt(c)
			}
			if got := qp.sent > 0; got != (tt.want > 0) {
				t.Errorf("it has got a sign: %t", got)
			}
			for range 100 * looksIdle {
				c.Beat.lookAt(c)
			}
			if qp.sent != tt.want {
				t.Errorf("%d signs have left, want %d", qp.sent, tt.want)
			}
		})
	}
}
