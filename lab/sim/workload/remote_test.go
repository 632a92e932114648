package workload

import (
	"testing"

	"github.com/rdmactor/rdmactor/internal/sim/world"
)

// The answer to a request may become a dead letter if the answering node sends so much that its
// queue may be full. Its asker must not wait for as long as for an answer that is certain.
func TestAnswersMayOverflow(t *testing.T) {
	inWorld(t, func(_ *world.World, e *Env) {
		ask := &postOp{start: start{machine: 0}, to: 1, target: loopA, how: sendFuture, n: 1, size: 24}
		for _, c := range []struct {
			name  string
			other *postOp
			want  bool
		}{
			{"few other messages", &postOp{start: start{machine: 1}, to: 0, n: 10, size: 1000}, false},
			{"many other messages", &postOp{start: start{machine: 1}, to: 0, n: 123, size: 27871}, true},
			{"many requests, whose answers are as large", &postOp{start: start{machine: 0}, to: 1, n: 123, size: 27871}, true},
			{"many forwarded messages", &postOp{start: start{machine: 2}, to: 1, then: thenForward, n: 123, size: 27871}, true},
			{"many messages to another node", &postOp{start: start{machine: 1}, to: 2, n: 123, size: 27871}, false},
		} {
			w := newRemote(e, []Op{ask, c.other})
			w.cfg.Queue = 256 << 10
			if got := (&remoteNode{w: w, machine: 0}).mayBeSilent(ask); got != c.want {
				t.Errorf("%s: the answer may be missing: %v, want %v", c.name, got, c.want)
			}
		}
	})
}
