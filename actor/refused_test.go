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

// rejectedDial dials there, and returns how the client hears that it was rejected.
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

// reasonIs asserts what a client reads of the reason that the runtime of the peer gives.
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

// Whoever waits for an owner's answer when the runtime is shut down reads that.
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

// The peer of a listener whose code fails learns that it could not be accepted.
func TestFailedListenersGiveTheirReason(t *testing.T) {
	onModes(t, func(w *world, cfg func() IDConfig) {
		server := w.farProbe()
		c := cfg()
		c.Route = func(*ConnectRequest) (owner *actor.PID, reject *Reject) { panic("on purpose") }
		w.listen(server, c)
		w.reasonIs(w.rejectedDial(cfg(), func() {}), "could not accept")
	})
}

// An accept of an authenticated peer that fails has the reason of its failure.
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

// An owner that destroys a request says nothing, and that is the application's answer.
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
