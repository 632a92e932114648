package actor

import (
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/cmid"
)

// refuser listens there, and rejects each request with the word "come".
func (w *world) refuser(cfg IDConfig) (listener *actor.PID) {
	w.Helper()
	refuse := actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*ConnectRequest); ok {
			ctx.Respond(&Reject{PrivateData: []byte("come")})
		}
	}, w.far.OnLoop())
	listener = w.far.CreateID(w.sys.Root.Spawn(refuse), cfg)
	if _, err := Ask[*Listening](w.Context(), w.far, listener, &Serve{Addr: there + ":7471"}); err != nil {
		w.Fatal(err)
	}
	return listener
}

// dials makes n requests at one moment, and counts how many of them reach the owner. The others are
// rejected before.
func (w *world) dials(rt *Runtime, n int, cfg IDConfig) (come int) {
	w.Helper()
	p := newProbe(w, w.sys, rt.OnLoop(), nil)
	for range n {
		p.send(rt.CreateID(p.pid, cfg), &Dial{Addr: there + ":7471"})
	}
	for range n {
		all := until[*Closed](p)
		for _, m := range all[:len(all)-1] {
			e, ok := m.msg.(*Rejected)
			switch {
			case !ok:
				w.Fatalf("a dial has ended with %v", m)
			case string(e.PrivateData) == "come":
				come++
			case !strings.Contains(e.Error(), "too many requests of this address") || e.PrivateData != nil:
				w.Errorf("rejected without the reason: %v, private data %q", e, e.PrivateData)
			}
		}
	}
	return come
}

// Requests of one address are limited to their rate, secured or not, and those of others do not
// wait.
func TestRequestRate(t *testing.T) {
	for name, cfg := range map[string]func(testing.TB) IDConfig{
		"insecure": func(testing.TB) IDConfig { return IDConfig{} }, "secured": secured,
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				w.f.Host("third").AddDevice("mem2", "10.0.0.9")
				third := w.open(w.f.Host("third").Driver(), Config{})
				l := w.refuser(cfg(w))
				for _, step := range []struct {
					rt   *Runtime
					wait time.Duration
					want int
				}{{w.rt, 0, 40}, {third, 0, 40}, {w.rt, time.Second, 10}, {w.rt, time.Hour, 40}} {
					time.Sleep(step.wait)
					if come := w.dials(step.rt, 60, cfg(w)); come != step.want {
						w.Errorf("after %v %d requests have come, want %d", step.wait, come, step.want)
					}
				}
				for _, i := range w.far.Inspect() {
					if i.PID.Equal(l) && (i.Listener.Refused.Rate != 4*60-130 || i.Listener.Pending != 0) {
						w.Errorf("the listener's counts: %+v", i.Listener)
					}
				}
			}, Config{Limits: Limits{RequestRate: 10}})
		})
	}
}

// From loopback, all come.
func TestRequestRateOfLoopback(t *testing.T) {
	l := &loop{rt: &Runtime{cfg: Config{Limits: Limits{RequestRate: 1}}}}
	for range 10 {
		for _, a := range []string{"127.0.0.1:1", "127.1.2.3:1", "[::1]:1"} {
			if !l.takeRate(cmid.MustAddr(a)) {
				t.Fatalf("a request from %s was refused", a)
			}
		}
	}
}

// Without a bound, all come.
func TestRequestRateOff(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		w.refuser(IDConfig{})
		for range 10 {
			if come := w.dials(w.rt, 600, IDConfig{}); come != 600 {
				w.Fatalf("%d of 600 requests have come", come)
			}
		}
	}, Config{Limits: Limits{RequestRate: -1}})
}
