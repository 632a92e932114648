package rpc

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"weak"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc/internal/wire"
)

// produced has weak pointers to the answers that the handlers of stuck returned.
type produced struct {
	mu   sync.Mutex
	each int
	all  []weak.Pointer[byte]
}

func (p *produced) handle(s *Server) {
	HandleRaw(s, stuck, func(context.Context, []byte, []byte) ([]byte, error) {
		b := make([]byte, p.each)
		p.mu.Lock()
		p.all = append(p.all, weak.Make(&b[0]))
		p.mu.Unlock()
		return b, nil
	})
}

func (p *produced) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all)
}

// little is a world whose runtimes have little memory for messages that their owners have not read.
var little = actortest.Config{Runtime: rdma.Config{Limits: rdma.Limits{ReceiveMemory: 4 << 20}}}

// large returns a raw client for messages of so many bytes, which has declared stuck.
func (r *rig) large(bytes int) *raw {
	r.t.Helper()
	p := r.Probe()
	c := &raw{p, r.CreateID(p.PID(), rdma.IDConfig{MaxMessage: bytes})}
	p.Request(c.id, &rdma.Dial{Addr: r.addr, PrivateData: wire.Hello{Version: 1, Window: 64}.Bytes()})
	actortest.Next[*rdma.Established](p)
	c.say(frame(wire.Header{Type: wire.FrameDeclare}, "test.Stuck"))
	return c
}

// declared returns the server's end of the connection of large.
func (r *rig) declared() *serverConn {
	all := r.s.connections()
	return all[slices.IndexFunc(all, func(c *serverConn) bool { return len(c.methods) > 0 })]
}

// While an answer waits, no further call of its connection begins. A call that is cancelled until
// then is reported as not executed. Waiting requests do not hold receive memory, which connections
// share.
func TestCallsBeginWhenNoAnswerWaits(t *testing.T) {
	const calls, request = 8, 200 << 10
	p := &produced{each: 1}
	inWorld(t, rigConfig{server: ServerConfig{MaxMessage: 1 << 20}}, p.handle, func(r *rig) {
		c := r.large(1 << 20)
		r.Wait()
		conn := r.declared()
		conn.out.answers.Add(1)
		for i := range calls {
			c.begin(wire.Header{}, i, 1, string(make([]byte, request)))
		}
		r.Wait()
		if n := r.s.InFlight(); n != calls || p.count() > 0 {
			r.t.Fatalf("%d calls are in flight, %d were executed", n, p.count())
		}
		for _, call := range conn.calls {
			if call.body.retained != nil || len(call.body.b) != request {
				r.t.Errorf("a request of %d bytes is in the memory that it came in", len(call.body.b))
			}
		}
		for i := range calls / 2 {
			c.say(frame(wire.Header{Type: wire.FrameCancel, Call: wire.CallID(i)}, ""))
		}
		if codes := c.tally(t, calls/2); codes[CodeCanceled] != calls/2 {
			t.Errorf("calls that were cancelled before they began ended with %v", codes)
		}
		conn.out.mu.Lock()
		conn.out.answers.Add(-1)
		conn.out.releaseLocked()
		conn.out.mu.Unlock()
		if codes := c.tally(t, calls/2); codes[0] != calls/2 {
			t.Errorf("calls that began later ended with %v", codes)
		}
		if n := p.count(); n != calls/2 {
			t.Errorf("%d calls were executed", n)
		}
		r.nothingKept()
	})
}

// Calls that wait to begin do so when the client takes its answers, and all are answered.
func TestCallsThatWaitToBeginAreAnswered(t *testing.T) {
	const calls = 200
	p := &produced{each: 900 << 10}
	inWorld(t, rigConfig{world: little, server: ServerConfig{MaxMessage: 64 << 10, Memory: 4 << 20}}, p.handle, func(r *rig) {
		c := r.large(1 << 20)
		c.begin(wire.Header{}, 0, calls, "")
		r.Wait()
		if codes := c.tally(r.t, calls); codes[0] != calls || p.count() != calls {
			r.t.Errorf("%d calls were executed, and have ended with %v", p.count(), codes)
		}
		r.nothingKept()
	})
}

// While an answer waits, memory holds it once: its message, and not the handler's slice.
func TestAnswersWaitOnceInMemory(t *testing.T) {
	p := &produced{each: 900 << 10}
	inWorld(t, rigConfig{world: little, server: ServerConfig{MaxMessage: 64 << 10, Memory: 1 << 20}}, p.handle, func(r *rig) {
		c := r.large(1 << 20)
		c.begin(wire.Header{}, 0, 20, "")
		r.Wait()
		runtime.GC()
		for i, w := range p.all {
			if w.Value() != nil {
				r.t.Errorf("the answer of handler %d is still referenced", i)
			}
		}
		if r.declared().out.answers.Load() == 0 {
			r.t.Error("no answer waits")
		}
	})
}
