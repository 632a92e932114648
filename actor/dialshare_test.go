package actor

import (
	"context"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/states"
)

// silent makes a listener there that answers no request for a minute.
func (w *world) silent(port string) {
	w.Helper()
	listen(w.farProbe(), w.far, there+port, IDConfig{AcceptTimeout: time.Minute})
}

// The addresses of a name share the time that Dial has, as they do in net.Dialer: one that is
// silent leaves the others their part.
func TestSilentAddressLeavesTimeForTheOthers(t *testing.T) {
	for _, c := range []struct {
		name       string
		timeout    time.Duration
		silent     []string
		wantWithin time.Duration
	}{
		{"two addresses have half of Timeout each", 5 * time.Second, []string{":7001"}, 2500 * time.Millisecond},
		{"three have a third each", 9 * time.Second, []string{":7001", ":7002"}, 6 * time.Second},
		{"each has two seconds at least", 5 * time.Second, []string{":7001", ":7002"}, 4 * time.Second},
		{"without a Timeout they share Timeouts.Connect", 0, []string{":7001"}, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			onFlavors(t, func(w *world) {
				var list []string
				for _, port := range c.silent {
					w.silent(port)
					list = append(list, there+port)
				}
				w.rt.resolve = addresses(append(list, there+":7471")...)
				server, client := w.farProbe(), w.probe()
				w.listen(server)
				took := elapsed(func() {
					client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: "there:7471", Timeout: c.timeout})
					_, s := next[*ConnectRequest](server)
					server.send(s, &Accept{})
					next[*Established](client)
				})
				if took != c.wantWithin {
					w.Errorf("connected after %v, want %v", took, c.wantWithin)
				}
			})
		})
	}
}

// Only the addresses before the last one are given less time than the phases have.
func TestLastAddressHasTheWholePhase(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.silent(":7001")
		w.silent(":7002")
		for _, c := range []struct {
			list []string
			want time.Duration
		}{
			{[]string{there + ":7001"}, 10 * time.Second},
			{[]string{there + ":7001", there + ":7002"}, 15 * time.Second},
		} {
			w.rt.resolve = addresses(c.list...)
			p := w.probe()
			took := elapsed(func() {
				p.send(w.rt.CreateID(p.pid, IDConfig{}), &Dial{Addr: "there:1"})
				f, _ := next[*Unreachable](p)
				is(w, f, unix.ETIMEDOUT)
				next[*Closed](p)
			})
			if took != c.want {
				w.Errorf("%d addresses took %v, want %v", len(c.list), took, c.want)
			}
		}
	})
}

// A context's deadline is shared out like a Timeout. The context ends the wait, not Dial.
func TestAskSharesTheDeadlineOut(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.silent(":7001")
		server, client := w.farProbe(), w.probe()
		w.listen(server)
		w.rt.resolve = addresses(there+":7001", there+":7471")
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		go func() {
			if g := server.any(); g.msg != nil {
				server.send(g.sender, &Accept{})
			}
		}()
		id, d := w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: "there:7471"}
		if _, err := Ask[*Established](ctx, w.rt, id, d); err != nil {
			w.Error(err)
		}
		w.rt.resolve = addresses(there+":7001", there+":7001")
		ctx, cancel = context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if _, err := Ask[*Established](ctx, w.rt, w.rt.CreateID(client.pid, IDConfig{}), d); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("when the deadline is over: %v", err)
		}
		if d.Timeout != 0 {
			w.Errorf("the caller's Dial was changed: %+v", d)
		}
	})
}

// The answer to a Dial names the command that its sender knows.
func TestAskAnswersWithTheCallersDial(t *testing.T) {
	onFlavors(t, func(w *world) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		d := &Dial{Addr: there + ":7001"}
		_, err := Ask[*Established](ctx, w.rt, w.rt.CreateID(w.probe().pid, IDConfig{}), d)
		var f Failure
		if !errors.As(err, &f) || f.Failed() != d {
			w.Errorf("%v: what failed is not the caller's command", err)
		}
	})
}

// First is tried before the others if the name has it, and changes nothing otherwise.
func TestDialBeginsWithFirst(t *testing.T) {
	onFlavors(t, func(w *world) {
		w.silent(":7001")
		server, client := w.farProbe(), w.probe()
		w.listen(server)
		w.rt.resolve = addresses(there+":7001", there+":7471")
		for _, c := range []struct {
			first string
			want  time.Duration
		}{{there + ":7471", 0}, {there + ":9", 5 * time.Second}} {
			took := elapsed(func() {
				client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: "there:7471", First: MustAddr(c.first)})
				_, s := next[*ConnectRequest](server)
				server.send(s, &Accept{})
				next[*Established](server)
				next[*Established](client)
			})
			if took != c.want {
				w.Errorf("with First %s it took %v, want %v", c.first, took, c.want)
			}
		}
	})
}

// rejecting makes every rejection one for reason.
type rejecting struct {
	cmid.Driver
	reason *RejectReason
}

func (d rejecting) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	return d.Driver.Open(l, rejectingUp{up, d.reason})
}

type rejectingUp struct {
	cmid.Upcalls
	reason *RejectReason
}

func (u rejectingUp) Event(h cmid.Handle, ev *cmid.DriverEvent) {
	if ev.Kind == states.KindRejected {
		ev.Status = int32(*u.reason)
	}
	u.Upcalls.Event(h, ev)
}

// A peer's CM rejects for reasons of one address, such as a stale connection: another address may
// do. The peer's application rejects whatever the address.
func TestDialStopsOnlyAtTheApplicationsRejection(t *testing.T) {
	for f, reasons := range map[states.Flavor]map[RejectReason]bool{
		0: {
			1: false, 3: false, 4: false, 5: false, 6: false, 7: false, 8: false, 9: false, 10: false, 12: false, 25: false, 26: false,
			cmid.RejectConsumerDefined: true, cmid.RejectVendorOption: true,
		},
		states.IWARP: {cmid.RejectRefused: false, cmid.RejectReset: true},
	} {
		reason := new(RejectReason)
		over := func(d cmid.Driver) cmid.Driver { return rejecting{d, reason} }
		inWorldOver(t, f, over, func(w *world) {
			w.rt.resolve = addresses(there+":7001", there+":7471")
			stops, server, client := w.farProbe(), w.farProbe(), w.probe()
			listen(stops, w.far, there+":7001")
			w.listen(server)
			for r, final := range reasons {
				*reason = r
				client.send(w.rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: "there:7471"})
				_, s := next[*ConnectRequest](stops)
				stops.send(s, &Reject{})
				next[*Closed](stops)
				if !final {
					_, s = next[*ConnectRequest](server)
					server.send(s, &Accept{})
					next[*Established](server)
					next[*Established](client)
					continue
				}
				next[*Rejected](client)
				next[*Closed](client)
				settle()
				server.quiet()
			}
		})
	}
}
