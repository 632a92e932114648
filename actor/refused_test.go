package actor

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// rejectedDial dials there, calls meanwhile, and returns the client's Rejected.
func (w *world) rejectedDial(cfg IDConfig, meanwhile func()) *Rejected {
	w.Helper()
	client := w.probe()
	client.send(w.rt.CreateID(client.pid, cfg), &Dial{Addr: there + ":7471", Timeout: time.Minute})
	meanwhile()
	all := until[*Closed](client)
	for _, ev := range all {
		if r, ok := ev.msg.(*Rejected); ok {
			return r
		}
	}
	w.Fatalf("the client is not rejected: %+v", all[len(all)-1].msg)
	return nil
}

// reasonIs asserts the peer runtime's reason in a client's Rejected.
func (w *world) reasonIs(r *Rejected, want string) {
	w.Helper()
	if !contains(r.Error(), want) || r.PrivateData != nil || errors.Is(r, ErrPeerLimits) {
		w.Errorf("the client reads %q, with the private data %q; want %q", r.Error(), r.PrivateData, want)
	}
}

// onModes runs test without security, and in each mode.
func onModes(t *testing.T, test func(w *world, cfg func() IDConfig)) {
	t.Run("plain", func(t *testing.T) {
		onFlavors(t, func(w *world) { test(w, func() IDConfig { return IDConfig{} }) })
	})
	onSecured(t, func(w *world, secured mode) { test(w, func() IDConfig { return secured(w) }) })
}

// A request that is pending when the runtime shuts down is rejected with that reason.
func TestShutdownGivesItsReason(t *testing.T) {
	onModes(t, func(w *world, cfg func() IDConfig) {
		server := w.farProbe()
		w.listen(server, cfg())
		r := w.rejectedDial(cfg(), func() {
			next[*ConnectRequest](server)
			if err := w.far.Shutdown(context.Background()); err != nil {
				w.Error(err)
			}
		})
		w.reasonIs(r, "shuts down")
	})
}

// A request whose listener's code fails is rejected with that reason.
func TestFailedListenersGiveTheirReason(t *testing.T) {
	onModes(t, func(w *world, cfg func() IDConfig) {
		server := w.farProbe()
		c := cfg()
		c.Route = func(*ConnectRequest) (owner *actor.PID, reject *Reject) { panic("on purpose") }
		w.listen(server, c)
		w.reasonIs(w.rejectedDial(cfg(), func() {}), "could not accept")
	})
}

// If the accept of an authenticated peer fails, the peer gets the reason of the failure.
func TestFailedAcceptGivesItsReason(t *testing.T) {
	onFlavors(t, func(w *world) {
		server := w.farProbe()
		cfg := peopled(w, nil)
		w.listen(server, cfg)
		r := w.rejectedDial(connecting(w, "alice"), func() {
			_, id := next[*ConnectRequest](server)
			if err := cfg.Security.Keys.Accept(credential("bob", 2)); err != nil {
				w.Fatal(err)
			}
			server.send(id, &Accept{})
			f, _ := next[*CommandFailed](server)
			is(w, f, unix.EACCES)
		})
		w.reasonIs(r, "no key has this id")
	})
}

// A request that its owner destroys is rejected without a reason of the runtime.
func TestDestroyedRequestHasNoReason(t *testing.T) {
	onModes(t, func(w *world, cfg func() IDConfig) {
		server := w.farProbe()
		w.listen(server, cfg())
		r := w.rejectedDial(cfg(), func() {
			_, id := next[*ConnectRequest](server)
			server.send(id, &cmid.DestroyID{})
		})
		if contains(r.Error(), "shuts down") || contains(r.Error(), "could not accept") {
			w.Errorf("the client reads %q", r.Error())
		}
	})
}
