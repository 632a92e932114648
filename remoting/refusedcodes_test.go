package remoting_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// reasons are what errors.Is may find in a *Refused.
var reasons = []error{remoting.ErrDenied, remoting.ErrDecode, remoting.ErrOverflow}

// A future gets the peer's reason, also for an unknown code.
func TestRefusedForTheirReason(t *testing.T) {
	n := start(t, remoting.Config{})
	s := meet(t, n, "oracle:1").introduce()
	for code, want := range map[frame.Code]error{
		frame.RefusedOther: nil, frame.RefusedDenied: remoting.ErrDenied, frame.RefusedUnknownType: remoting.ErrDecode,
		frame.RefusedUndecodable: remoting.ErrDecode, frame.RefusedOverflow: remoting.ErrOverflow, 99: nil,
	} {
		f := n.sys.Root.RequestFuture(actor.NewPID("oracle:1", "oracle"), text("?"), soon)
		r := s.hears(frame.KindUser)
		s.say(frame.Record{Kind: frame.KindRefused, Target: r.Target, Sender: r.Sender, Code: code, Reason: "because"})
		_, err := remoting.Result(f)
		var refused *remoting.Refused
		if !errors.As(err, &refused) || refused.By != "oracle:1" || !strings.Contains(err.Error(), "because") {
			t.Errorf("code %d: %v", code, err)
		}
		for _, e := range reasons {
			if errors.Is(err, e) != errors.Is(want, e) {
				t.Errorf("code %d: %v, and errors.Is finds %q: %v", code, err, e, errors.Is(err, e))
			}
		}
	}
}

// A peer gets the reason why its message was refused.
func TestRefusedForOurReason(t *testing.T) {
	n := start(t, remoting.Config{Expose: everything})
	n.spawn("echo", echo)
	n.sys.ProcessRegistry.Add(panicking{}, "panicking")
	s := meet(t, n, "asker:1").introduce()
	for what, c := range map[string]struct {
		target, typ, body string
		code              frame.Code
	}{
		"no such type":          {"echo", "no.such.Type", "", frame.RefusedUnknownType},
		"no such message":       {"echo", "google.protobuf.StringValue", "\x0a\xff", frame.RefusedUndecodable},
		"a process that panics": {"panicking", "google.protobuf.StringValue", "", frame.RefusedOther},
	} {
		s.say(frame.Record{Kind: frame.KindUser, Target: c.target, Sender: frame.PID{ID: "future$1"}, Type: c.typ, Body: []byte(c.body)})
		if r := s.hears(frame.KindRefused); r.Code != c.code || r.Target != c.target || r.Reason == "" {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// panicking is a process of another package, which panics at every message.
type panicking struct{}

func (panicking) SendUserMessage(*actor.PID, any)   { panic("I take no message") }
func (panicking) SendSystemMessage(*actor.PID, any) {}
func (panicking) Stop(*actor.PID)                   {}

// The reports of an unknown request and of a lost connection have a text also if there was no
// cause.
func TestTextsWithoutACause(t *testing.T) {
	for _, text := range []string{
		(&remoting.Unknown{Target: actor.NewPID("a:1", "x")}).Error(), (&remoting.Disconnected{Peer: remoting.Peer{Name: "a:1"}}).String(),
	} {
		if strings.Contains(text, "nil") {
			t.Error(text)
		}
	}
}

// The error of a failed Spawn reports whether the actor may be there.
func TestSpawnFails(t *testing.T) {
	a := start(t, remoting.Config{})
	nobody := freeName(t)
	ctx, cancel := timeout(soon)
	defer cancel()
	for range 2 { // the second one finds that a dial has failed
		if _, err := a.Spawn(ctx, nobody, "echo", ""); !errors.Is(err, remoting.ErrSpawn) || !errors.Is(err, remoting.ErrUnreachable) {
			t.Error(err)
		}
	}
	s := meet(t, a, "dies:1").introduce()
	go func() {
		s.hears(frame.KindSpawn)
		s.send([]byte("\xff\xfe garbage"))
	}()
	_, err := a.Spawn(ctx, "dies:1", "echo", "")
	var unknown *remoting.Unknown
	if !errors.As(err, &unknown) || errors.Is(err, remoting.ErrSpawn) || strings.Contains(err.Error(), "whether  at") {
		t.Error(err)
	}
}

// The reason of a peer appears once.
func TestReasonOnce(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{})
	_, err := a.ask(b.pid("private"), text("?"))
	if !errors.Is(err, remoting.ErrDenied) || strings.Count(err.Error(), remoting.ErrDenied.Error()) != 1 {
		t.Error(err)
	}
	_, err = a.Spawn(context.Background(), b.Name(), "private", "")
	if !errors.Is(err, remoting.ErrDenied) || strings.Count(err.Error(), remoting.ErrDenied.Error()) != 1 {
		t.Error(err)
	}
}

// A node reports a refused watch only locally: the watcher is answered as if the target were
// missing.
func TestRefusedWatchIsPublished(t *testing.T) {
	a, b := start(t, remoting.Config{}), start(t, remoting.Config{Expose: remoting.Expose{Reach: []string{"*"}}})
	b.spawn("private", echo)
	if res, err := a.sys.Root.StopFuture(b.pid("private")).Result(); err != nil || res.(*actor.Terminated).Why != actor.TerminatedReason_NotFound {
		t.Error(res, err)
	}
	no := await(t, b, func(r *remoting.Refused) bool {
		return r.Target.Id == "private" && strings.Contains(r.Error(), "watch")
	})
	if !errors.Is(no, remoting.ErrDenied) || no.By != b.Name() || no.Sender.GetAddress() != a.Name() {
		t.Errorf("%+v", no)
	}
}
