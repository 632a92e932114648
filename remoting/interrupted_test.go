package remoting_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/remoting"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// An answer is accepted after an interruption of the connection, although the worker takes longer
// than Patience.
func TestAnswerAfterAnInterruption(t *testing.T) {
	const asks, works = "10.0.0.1:7471", "10.0.0.2:7471"
	actortest.Simulate(t, actortest.Simulation{Seeds: 3}, func(s *actortest.Sim) {
		answered := false
		s.Machine("asks", "10.0.0.1", func(p *actortest.Process) {
			var interrupted atomic.Bool
			rt, n := startAt(s, p, remoting.Config{Name: asks, Admit: func(remoting.Peer) error {
				if interrupted.Load() {
					return errors.New("an interruption")
				}
				return nil
			}})
			_, _ = p.System().Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
				switch ctx.Message().(type) {
				case *actor.Started:
					ctx.Request(actor.NewPID(works, "worker"), text("do it"))
				case *wrapperspb.StringValue:
					answered = true
				}
			}, rt.OnLoop()), "asker")
			p.System().EventStream.Subscribe(func(ev any) {
				if no, ok := ev.(*remoting.Refused); ok {
					s.Fail("%v", no)
				}
			})
			p.Sleep(2 * time.Second)
			interrupted.Store(true)
			n.Readmit()
			p.Sleep(time.Second)
			interrupted.Store(false)
		})
		s.Machine("works", "10.0.0.2", func(p *actortest.Process) {
			rt, _ := startAt(s, p, remoting.Config{Name: works, Expose: remoting.Expose{Reach: []string{"worker"}}})
			_, _ = p.System().Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
				if ctx.Sender() != nil {
					p.Sleep(15 * time.Second)
					ctx.Respond(text("done"))
				}
			}, rt.OffLoop()), "worker")
		})
		s.Done(func() bool { return answered })
	})
}

// startAt starts a node on a simulated machine.
func startAt(s *actortest.Sim, p *actortest.Process, cfg remoting.Config) (*rdma.Runtime, *remoting.Node) {
	rt, err := p.Open()
	if err != nil {
		s.Fail("%v", err)
	}
	n, err := remoting.Start(rt, cfg)
	if err != nil {
		s.Fail("%v", err)
	}
	return rt, n
}

func marshalled(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A process may answer on a later connection, too. Another process of the same name may not.
func TestAnswersOfTheSameProcess(t *testing.T) {
	n := start(t, remoting.Config{Patience: 10 * time.Millisecond})
	asker, in := n.probe("asker")
	asked := meetFrom(t, start(t, remoting.Config{}), n, "worker:1").introduce()
	hasOpened(t, n)
	n.sys.Root.RequestWithCustomSender(actor.NewPID("worker:1", "worker"), text("?"), asker)
	asked.hears(frame.KindUser)
	gone := func(s *stranger) {
		s.away()
		eventually(t, "its link stays", func() bool { return len(n.Peers()) == 0 })
	}
	gone(asked)
	answer := frame.Record{
		Kind: frame.KindUser, Target: "asker", Sender: frame.PID{ID: "worker"}, Type: "google.protobuf.StringValue", Body: marshalled(t, text("done")),
	}
	again := meetFrom(t, start(t, remoting.Config{}), n, "worker:1").introduce()
	again.say(answer)
	if m := next[*wrapperspb.StringValue](t, in); m.Value != "done" {
		t.Errorf("%v", m)
	}
	gone(again)
	other := meetAs(t, start(t, remoting.Config{}), n, "worker:1", 8, rdma.IDConfig{MaxMessage: 4 << 20}).introduce()
	other.say(answer)
	if r := other.hears(frame.KindRefused); r.Code != frame.RefusedDenied {
		t.Errorf("%+v", r)
	}
}

// hasOpened waits until n's only link is open for n too. A message that is sent earlier waits for
// it, for Patience at most.
func hasOpened(t *testing.T, n *node) {
	t.Helper()
	eventually(t, "it does not open", func() bool { i := n.Peers(); return len(i) == 1 && i[0].Connected })
}

// A process that pretends to be a peer's next one, and is not admitted or does not prove its
// identity, takes away nothing that the peer may answer.
func TestRefusedProcessEndsNoGrants(t *testing.T) {
	for what, refuse := range map[string]func(*remoting.Config, *atomic.Bool){
		"not admitted": func(cfg *remoting.Config, refuses *atomic.Bool) {
			cfg.Admit = func(remoting.Peer) error {
				if refuses.Load() {
					return errors.New("it is refused")
				}
				return nil
			}
		},
		"not proved": func(cfg *remoting.Config, refuses *atomic.Bool) {
			cfg.NodeOf = func(string) string {
				if refuses.Load() {
					return ""
				}
				return "worker:1"
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			cfg, refuses := remoting.Config{Patience: 10 * time.Millisecond}, new(atomic.Bool)
			refuse(&cfg, refuses)
			n := start(t, cfg)
			asker, in := n.probe("asker")
			asked := meetFrom(t, start(t, remoting.Config{}), n, "worker:1").introduce()
			hasOpened(t, n)
			n.sys.Root.RequestWithCustomSender(actor.NewPID("worker:1", "worker"), text("?"), asker)
			asked.hears(frame.KindUser)
			gone := func(s *stranger) {
				s.away()
				eventually(t, "its link stays", func() bool { return len(n.Peers()) == 0 })
			}
			gone(asked)
			refuses.Store(true)
			other := meetAs(t, start(t, remoting.Config{}), n, "worker:1", 8, rdma.IDConfig{MaxMessage: 4 << 20})
			select {
			case <-other.up:
				other.hello()
				other.ends(frame.GoodbyeBlocked)
			case err := <-other.down:
				if !errors.Is(err, reconnect.ErrWrongIdentity) {
					t.Error(err)
				}
			}
			gone(other)
			refuses.Store(false)
			meetFrom(t, start(t, remoting.Config{}), n, "worker:1").introduce().say(frame.Record{
				Kind: frame.KindUser, Target: "asker", Sender: frame.PID{ID: "worker"}, Type: "google.protobuf.StringValue", Body: marshalled(t, text("done")),
			})
			if m := next[*wrapperspb.StringValue](t, in); m.Value != "done" {
				t.Errorf("%v", m)
			}
		})
	}
}

// The next process of a peer may answer messages that were queued before it started, and no others.
func TestNextProcessAnswersWhatHasWaited(t *testing.T) {
	const name = "127.0.0.1:1" // has no listener
	n := start(t, remoting.Config{Patience: soon})
	early, _ := n.probe("early")
	late, in := n.probe("late")
	worker := actor.NewPID(name, "worker")
	first := meetFrom(t, start(t, remoting.Config{}), n, name).introduce()
	n.sys.Root.RequestWithCustomSender(worker, text("?"), early)
	first.hears(frame.KindUser)
	first.away()
	eventually(t, "it stays connected", func() bool { return n.connected() == 0 })
	n.sys.Root.RequestWithCustomSender(worker, text("?"), late)
	second := meetNext(t, n, name).introduce()
	second.hears(frame.KindUser)
	for _, target := range []string{"early", "late"} {
		second.say(frame.Record{
			Kind: frame.KindUser, Target: target, Sender: frame.PID{ID: "worker"}, Type: "google.protobuf.StringValue", Body: marshalled(t, text(target)),
		})
	}
	if m := next[*wrapperspb.StringValue](t, in); m.Value != "late" {
		t.Errorf("%v", m)
	}
	if r := second.hears(frame.KindRefused); r.Code != frame.RefusedDenied || r.Target != "early" {
		t.Errorf("%+v", r)
	}
}

// meetNext connects the next incarnation of a stranger to a node, which may be dialling it.
func meetNext(t *testing.T, n *node, name string) *stranger {
	t.Helper()
	for {
		s := meetAs(t, start(t, remoting.Config{}), n, name, 8, rdma.IDConfig{MaxMessage: 4 << 20})
		select {
		case up := <-s.up:
			s.up <- up
			return s
		case <-s.down:
			s.away()
		}
	}
}
