package remoting_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/remoting"
)

// job is a message without protobuf.
type job struct {
	ID   int
	Text string
}

// point encodes itself. 1 panics when it is encoded, 2 when it is decoded.
type point uint32

func points() codec.Type {
	return codec.Own("test.Point", func(dst []byte, p point) ([]byte, error) {
		if p == 1 {
			panic("a point that cannot be encoded")
		}
		return binary.BigEndian.AppendUint32(dst, uint32(p)), nil
	}, func(b []byte) (point, error) {
		p := point(binary.BigEndian.Uint32(b))
		if p == 2 {
			panic("a point that cannot be decoded")
		}
		return p, nil
	})
}

// Messages need no protobuf. A message that cannot be encoded is a dead letter immediately, with
// the reason; one that cannot be decoded is refused, and its future fails immediately.
func TestCodecs(t *testing.T) {
	types := []codec.Type{codec.JSON[*job]("test.Job"), points()}
	a := start(t, remoting.Config{Codec: codec.New(append(types, codec.JSON[*struct{ Only string }]("test.OnlyHere"))...)})
	b := start(t, remoting.Config{Codec: codec.New(types...), Expose: everything})
	b.spawn("echo", func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *job, point:
			ctx.Respond(m)
		}
	})
	if got, err := a.ask(b.pid("echo"), &job{7, "work"}); err != nil || *got.(*job) != (job{7, "work"}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := a.ask(b.pid("echo"), point(9)); err != nil || got != point(9) {
		t.Errorf("%v, %v", got, err)
	}
	for what, m := range map[string]any{"no codec": &struct{ X int }{1}, "nil": nil, "a panic": point(1), "a channel": make(chan int)} {
		if got, err := a.ask(b.pid("echo"), m); !errors.Is(err, actor.ErrDeadLetter) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
		await(t, a, func(r *remoting.Refused) bool { return errors.Is(r, remoting.ErrEncode) && r.By == a.Name() })
	}
	for what, m := range map[string]any{"a type that b does not know": &struct{ Only string }{"a"}, "a panic": point(2)} {
		got, err := a.ask(b.pid("echo"), m)
		var refused *remoting.Refused
		if !errors.As(err, &refused) || !errors.Is(err, remoting.ErrDecode) || refused.By != b.Name() {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	if i := a.info(b); !i.Connected || i.Counts.Unknown != 0 {
		t.Errorf("%+v", i)
	}
}

// A message that is larger than the peer takes is a dead letter: immediately, or when the peer's
// limit is known.
func TestTooLarge(t *testing.T) {
	small, b := freeName(t), start(t, remoting.Config{})
	large := wrapperspb.Bytes(make([]byte, 200<<10))
	ask := func() actor.Future { return b.sys.Root.RequestFuture(actor.NewPID(small, "echo"), large, soon) }
	b.sys.Root.Send(actor.NewPID(small, "echo"), large) // it waits
	n := open(t, remoting.Config{Name: small, Listen: small, MaxMessage: 64 << 10, Expose: everything}, 1)
	defer n.end()
	n.spawn("echo", echo)
	await(t, b, func(r *remoting.Refused) bool { return errors.Is(r, remoting.ErrTooLarge) })
	await(t, b, func(e *actor.DeadLetterEvent) bool { return e.PID.Address == small })
	if got, err := remoting.Result(ask()); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("%v, %v", got, err)
	}
	allowed(t, b, actor.NewPID(small, "echo"))
	huge := wrapperspb.Bytes(make([]byte, 9<<20)) // larger than b's queue, too
	if got, err := b.ask(actor.NewPID(freeName(t), "echo"), huge); !errors.Is(err, actor.ErrDeadLetter) {
		t.Errorf("%v, %v", got, err)
	}
}

// Large messages go through as they are.
func TestLarge(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: everything})
	b.spawn("echo", func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
			ctx.Respond(m)
		}
	})
	for _, n := range []int{63 << 10, 64 << 10, 65 << 10, 1 << 20, 4<<20 - 1000} {
		m := wrapperspb.Bytes(make([]byte, n))
		for i := range m.Value {
			m.Value[i] = byte(i >> 8)
		}
		got, err := a.ask(b.pid("echo"), m)
		if err != nil || string(got.(*wrapperspb.BytesValue).Value) != string(m.Value) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
