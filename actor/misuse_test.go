package actor

import (
	"context"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// Zero values and nil pointers are refused at their use: with an error, or with a panic in the
// caller that names the value. Nothing else is affected.
func TestMisuse(t *testing.T) {
	var send *Send
	var memory *Memory
	var received *Received
	for name, use := range map[string]func(){
		"NewSendBuffer(-1)":   func() { NewSendBuffer(-1) },
		"NewSendBuffer(-8)":   func() { NewSendBuffer(-8) },
		"nil Send Bytes":      func() { send.Bytes() },
		"nil Send Len":        func() { send.Len() },
		"nil Send Release":    func() { send.Release() },
		"zero Send Release":   func() { new(Send).Release() },
		"nil Memory Len":      func() { memory.Len() },
		"nil Memory Access":   func() { memory.Access() },
		"nil Memory Bytes":    func() { memory.Bytes() },
		"nil Received Retain": func() { received.Retain() },
		"nil Received Clone":  func() { received.Clone() },
		"nil Received Release": func() {
			received.Release()
		},
	} {
		func() {
			defer func() {
				if sentence, ok := recover().(string); !ok || !strings.HasPrefix(sentence, "rdma: ") {
					t.Errorf("%s panics with %q", name, sentence)
				}
			}()
			use()
		}()
	}
	if s := new(Send); s.Bytes() != nil || s.Len() != 0 {
		t.Errorf("a zero Send has %d bytes", s.Len())
	}
	new(Received).Retain().Clone().Release()
	for name, m := range map[string]*Memory{"nil": nil, "zero": {}} {
		_, read := m.ReadAt(make([]byte, 1), 0)
		_, write := m.WriteAt(make([]byte, 1), 0)
		use := m.Use(func([]byte) error { t.Error("called"); return nil })
		_, _, pin := Local{}.Pin(m)
		for what, err := range map[string]error{"ReadAt": read, "WriteAt": write, "Use": use, "Pin": pin} {
			t.Run(name+" Memory "+what, func(t *testing.T) {
				is(t, err, unix.EINVAL)
				is(t, err, ErrMemoryGone)
			})
		}
	}
}

func TestMisuseOfAConnection(t *testing.T) {
	inWorld(t, states.IWARP, func(w *world) {
		p := w.connect()
		for _, id := range []*actor.PID{nil, p.c} {
			var nothing *Close
			for _, c := range []Command{nil, nothing} {
				_, err := Ask[*Closed](context.Background(), w.rt, id, c)
				is(w, err, unix.EINVAL)
			}
		}
		p.client.send(p.c, &Send{})
		f, _ := next[*SendFailed](p.client)
		is(w, f, unix.EINVAL)
		for _, m := range []*Memory{nil, {}} {
			for _, c := range []Command{&Grant{m}, &Revoke{m}, &FreeMemory{m}} {
				p.client.send(p.c, c)
				f, _ := next[*CommandFailed](p.client)
				is(w, f, unix.EINVAL)
			}
		}
		w.sys.Root.Send(p.client.pid, (*Received)(nil))
		if g := p.client.any(); g.msg.(*Received) != nil {
			w.Errorf("got %v", g.msg)
		}
		p.client.send(p.c, NewSend([]byte("as ever")))
		if g := p.server.any(); g.data != "as ever" {
			w.Errorf("got %v", g)
		}
	})
}
