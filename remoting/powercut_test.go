package remoting_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/remoting"
)

// moving is a node with a name that is no address, where it is now.
type moving struct {
	name string
	mu   sync.Mutex
	at   string
}

func (m *moving) resolve(_ context.Context, name string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name == m.name {
		return m.at, nil
	}
	return name, nil
}

func (m *moving) move(at string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = at
}

// startNode starts a node with an actor "echo" in a process of a simulated world.
func startNode(w *world.World, p *world.Process, cfg remoting.Config) {
	rt, err := p.Open(rdma.Config{})
	if err == nil {
		cfg.Expose = everything
		_, err = remoting.Start(rt, cfg)
	}
	if err == nil {
		_, err = p.System().Root.SpawnNamed(actor.PropsFromFunc(echo, rt.OnLoop()), "echo")
	}
	if err != nil && p.Context().Err() == nil {
		w.Fail("%s: %v", p.Name(), err)
	}
}

// askEcho asks the actor "echo" of a node.
func askEcho(p *world.Process, addr string, d time.Duration) error {
	_, err := remoting.Result(p.System().Root.RequestFuture(actor.NewPID(addr, "echo"), text("?"), d))
	p.Sleep(0) // a future does not know the simulation, and so does not wait for its turn
	return err
}

// inWorlds runs a script in a simulated world of each kind.
func inWorlds(t *testing.T, script func(t *testing.T, w *world.World)) {
	t.Helper()
	for name, kind := range map[string]world.Kind{"iWARP": world.Embedded, "soft-RoCE": world.TwinSoftRoCE, "soft-iWARP": world.TwinSIW} {
		t.Run(name, func(t *testing.T) {
			if r := world.Run(t, world.Config{Seed: 1, Kind: kind}, func(w *world.World) { script(t, w) }); r.Failure != "" {
				t.Error(r.Failure)
			}
		})
	}
}

// A node that is known by its name loses its power, and comes back at another address, or at the
// same. The other node has not noticed. They are connected again within three seconds, or
// immediately, and the first request is answered.
func TestPowerCut(t *testing.T) {
	for where, most := range map[string]time.Duration{"10.0.0.3:7471": 3 * time.Second, "10.0.0.2:7471": time.Second} {
		t.Run(where, func(t *testing.T) {
			inWorlds(t, func(t *testing.T, w *world.World) { powerCut(w, where, most) })
		})
	}
}

func powerCut(w *world.World, where string, most time.Duration) {
	const a = "10.0.0.1:7471"
	b := &moving{name: "b.example:7471", at: "10.0.0.2:7471"}
	first, second, third := w.Machine("a", "10.0.0.1/24"), w.Machine("b", "10.0.0.2/24"), w.Machine("c", "10.0.0.3/24")
	first.Start(func(p *world.Process) { startNode(w, p, remoting.Config{Name: a, Resolve: b.resolve}) })
	met := false
	second.Start(func(p *world.Process) {
		startNode(w, p, remoting.Config{Name: b.name, Listen: b.at})
		met = askEcho(p, a, 5*time.Second) == nil
	})
	if !w.RunUntil(5*time.Second, func() bool { return met }) {
		w.Fail("they have not met")
	}
	w.RunFor(10 * time.Second)
	second.PowerOff()
	w.RunFor(time.Second)
	b.move(where)
	if where == "10.0.0.2:7471" {
		second.PowerOn()
		third = second
	}
	var err error
	var took time.Duration
	asked := false
	third.Start(func(p *world.Process) {
		startNode(w, p, remoting.Config{Name: b.name, Listen: b.at})
		began := w.Now()
		err = askEcho(p, a, time.Minute)
		took, asked = w.Now()-began, true
	})
	w.RunUntil(time.Minute, func() bool { return asked })
	if !asked || err != nil || took > most {
		w.Fail("asked: %v after %v: %v", asked, took, err)
	}
}

// A process has the name of a node that is connected. Its requests fail with the reason, which
// stands in the dead letters' event, in the refusal of the next request and among the peers; and
// the node keeps its connection.
func TestReasonOfDeadLetters(t *testing.T) {
	inWorlds(t, func(t *testing.T, w *world.World) {
		const a, name = "10.0.0.1:7471", "b.example:7471"
		b := &moving{name: name, at: "10.0.0.2:7471"}
		var lost int
		met := false
		w.Machine("a", "10.0.0.1/24").Start(func(p *world.Process) {
			p.System().EventStream.Subscribe(func(ev any) {
				if _, ok := ev.(*remoting.Disconnected); ok {
					lost++
				}
			})
			startNode(w, p, remoting.Config{Name: a, Resolve: b.resolve})
		})
		w.Machine("b", "10.0.0.2/24").Start(func(p *world.Process) {
			startNode(w, p, remoting.Config{Name: name, Listen: b.at})
			met = askEcho(p, a, 5*time.Second) == nil
		})
		if !w.RunUntil(5*time.Second, func() bool { return met }) {
			w.Fail("they have not met")
		}
		var events []string
		var failures []error
		var answers []error
		w.Machine("c", "10.0.0.3/24").Start(func(p *world.Process) {
			p.System().EventStream.Subscribe(func(ev any) {
				switch ev := ev.(type) {
				case *remoting.NotSent:
					events, failures = append(events, fmt.Sprint(ev.Messages)), append(failures, ev.Err)
				case *remoting.Refused:
					events, failures = append(events, "refused"), append(failures, ev.Err)
				}
			})
			rt, err := p.Open(rdma.Config{})
			if err != nil {
				return
			}
			n, err := remoting.Start(rt, remoting.Config{Name: name, Listen: "10.0.0.3:7471", Patience: 5 * time.Second})
			if err != nil {
				w.Fail("%v", err)
				return
			}
			p.System().Root.Send(actor.NewPID(a, "echo"), text("!"))
			answers = append(answers, askEcho(p, a, time.Minute))
			for _, i := range n.Peers() {
				failures = append(failures, i.Failure)
			}
			answers = append(answers, askEcho(p, a, time.Minute))
		})
		w.RunUntil(2*time.Minute, func() bool { return len(answers) == 2 })
		w.RunFor(time.Second)
		for _, err := range answers {
			if !errors.Is(err, actor.ErrDeadLetter) {
				w.Fail("answered with %v", err)
			}
		}
		slices.Sort(events)
		if got := strings.Join(events, " "); got != "1 1 refused" && got != "1 1 1" {
			w.Fail("events: %q", got)
		}
		for _, err := range failures {
			if !errors.Is(err, reconnect.ErrElsewhere) || strings.Contains(err.Error(), unix.EHOSTUNREACH.Error()) {
				w.Fail("the reason is %v", err)
			}
		}
		if len(failures) < 2 || lost != 0 {
			w.Fail("%d reasons; the node has lost its connection %d times", len(failures), lost)
		}
	})
}
