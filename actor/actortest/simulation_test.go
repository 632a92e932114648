package actortest_test

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
)

// runs differs from run to run.
var runs int

// mistake is a simulation that has to fail, and the expected part of its report.
type mistake struct {
	cfg    actortest.Simulation
	script func(t *testing.T, s *actortest.Sim)
	want   []string
	within time.Duration // the test's -timeout; 0: 5 m
}

// faulty are incorrect programs.
var faulty = map[string]mistake{
	"never done": {
		cfg:    actortest.Simulation{Patience: time.Second},
		script: func(_ *testing.T, s *actortest.Sim) { s.Done(func() bool { return false }) },
		want:   []string{"seed 1 fails: not done 1s after the last fault", "it needs no fault", "-actortest.seed=1"},
	},
	"an invariant": {
		cfg: actortest.Simulation{},
		script: func(_ *testing.T, s *actortest.Sim) {
			s.Invariant("the moon is full", func() error { return errors.New("it is not") })
		},
		want: []string{"the moon is full: it is not"},
	},
	"a kill that is not survived": {
		cfg: actortest.Simulation{Faults: actortest.AllFaults},
		script: func(_ *testing.T, s *actortest.Sim) {
			starts := 0
			s.Machine("other", "10.0.0.2", func(*actortest.Process) {}).Spare(actortest.AllFaults)
			s.Machine("fragile", "10.0.0.1", func(*actortest.Process) {
				if starts++; starts == 2 {
					s.Fail("started twice")
				}
			})
		},
		want: []string{"started twice", "the faults that it needs:", "fragile "},
	},
	"a PID of another machine": {
		cfg: actortest.Simulation{},
		script: func(_ *testing.T, s *actortest.Sim) {
			var server *actor.PID
			done := false
			s.Done(func() bool { return done })
			s.Machine("server", "10.0.0.1", func(p *actortest.Process) {
				rt, _ := p.Open()
				server = p.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					_, done = ctx.Message().(string)
				}, rt.OnLoop()))
			})
			s.Machine("client", "10.0.0.2", func(p *actortest.Process) {
				p.Sleep(time.Second)
				p.System().Root.Send(server, "hello")
			})
		},
		want: []string{"client.2 has sent a string to $", "which is a PID of server.1: a PID is valid in its process only"},
	},
	"more than the seed": {
		cfg: actortest.Simulation{},
		script: func(_ *testing.T, s *actortest.Sim) {
			runs++
			s.Trace("run %d", runs)
		},
		want: []string{"two runs of seed 1 differ: line 1"},
	},
	"an actor that panics": {
		cfg: actortest.Simulation{},
		script: func(_ *testing.T, s *actortest.Sim) {
			done := false
			s.Done(func() bool { return done })
			s.Machine("server", "10.0.0.1", func(p *actortest.Process) {
				rt, _ := p.Open()
				owner := p.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					switch m := ctx.Message().(type) {
					case *rdma.ConnectRequest:
						ctx.Respond(&rdma.Accept{})
					case *rdma.Received:
						panic("what " + string(m.Data))
					}
				}, rt.OnLoop()))
				_ = rt.ListenAndServe(p.Context(), "10.0.0.1:7471", owner)
			})
			s.Machine("client", "10.0.0.2", func(p *actortest.Process) {
				p.Sleep(time.Second)
				rt, _ := p.Open()
				p.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
					switch ctx.Message().(type) {
					case *actor.Started:
						ctx.Send(rt.CreateID(ctx.Self()), &rdma.Dial{Addr: "10.0.0.1:7471"})
					case *rdma.Established:
						ctx.Respond(rdma.NewSend([]byte("for")))
					case *rdma.Closed:
						done = true
					}
				}, rt.OnLoop()))
			})
		},
		want: []string{"has panicked: what for"},
	},
}

// Errors and the names of actors are the same in each run of a seed, so they may be traced: their
// handles do not depend on the identifiers of earlier runs.
func TestTracedErrorsRepeat(t *testing.T) {
	actortest.Simulate(t, actortest.Simulation{Seeds: 8}, func(s *actortest.Sim) {
		failed := false
		s.Done(func() bool { return failed })
		s.Machine("client", "10.0.0.1", func(p *actortest.Process) {
			rt, err := p.Open()
			if err != nil {
				s.Fail("open: %v", err)
				return
			}
			p.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				switch m := ctx.Message().(type) {
				case *actor.Started:
					// without a listener
					ctx.Send(rt.CreateID(ctx.Self()), &rdma.Dial{Addr: "10.0.0.1:7471"})
				case rdma.Failure:
					s.Trace("%s: %v", ctx.Sender().Id, m)
					failed = true
				}
			}, rt.OnLoop()))
		})
	})
}

func TestSimulateReports(t *testing.T) { reports(t, faulty) }

// reports runs each of them in a separate process.
func reports(t *testing.T, all map[string]mistake) {
	t.Helper()
	if f, ok := all[os.Getenv("ACTORTEST_FAULTY")]; ok {
		actortest.Simulate(t, f.cfg, func(s *actortest.Sim) { f.script(t, s) })
		return
	}
	for name, f := range all {
		t.Run(name, func(t *testing.T) {
			test, _, _ := strings.Cut(t.Name(), "/")
			self := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.timeout="+cmp.Or(f.within, 5*time.Minute).String())
			self.Env = append(os.Environ(), "ACTORTEST_FAULTY="+name)
			out, err := self.CombinedOutput()
			if err == nil {
				t.Fatalf("it passes:\n%s", out)
			}
			for _, want := range f.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("the report does not say %q:\n%s", want, out)
				}
			}
		})
	}
}
