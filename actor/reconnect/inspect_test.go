package reconnect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/actor/reconnect"
)

// look returns the report of Links on the only link.
func (r *rig) look() reconnect.LinkInfo {
	r.t.Helper()
	all := reconnect.Links(r.Runtime())
	if len(all) != 1 || !all[0].Who.Equal(r.link) {
		r.t.Fatalf("links: %+v", all)
	}
	return all[0]
}

// Links shows the state by the time that the owner is notified: the state and since when, the
// attempts, why the last one has failed, and when the next one follows. Messages change nothing of
// it.
func TestLinks(t *testing.T) {
	onFlavors(t, func(r *rig) {
		r.spawn(reconnect.Config{})
		for i := range 3 {
			d := actortest.Next[*reconnect.Down](r.owner)
			got := r.look()
			if got.State != reconnect.LinkPausing || got.Addr != there || got.Generation != uint64(i+1) || got.Failed != i+1 ||
				!got.Since.Equal(r.Now()) || !errors.Is(got.LastErr, d.Err) || !is(got.LastErr, unix.ECONNREFUSED) || !got.NextTry.Equal(d.NextTry) {
				r.t.Errorf("at %v, after %+v: %+v", r.Now(), d, got)
			}
		}
		r.serve()
		conn, up := r.accept()
		r.send(1, "one")
		r.hears("one")
		r.released()
		got := r.look()
		since := got.Since
		if got.State != reconnect.LinkUp || got.Failed != 0 || got.Generation != up.Generation || got.LastErr == nil || !got.NextTry.IsZero() ||
			r.Now().Sub(since) > time.Second {
			r.t.Errorf("at %v, up: %+v", r.Now(), got)
		}
		r.Advance(time.Minute)
		r.send(2, "two")
		r.hears("two")
		r.released()
		if got := r.look(); !got.Since.Equal(since) || got.State != reconnect.LinkUp {
			r.t.Errorf("a minute later: %+v, not since %v", got, since)
		}
		r.Disconnect(conn)
		_, d := r.untilDown()
		if got := r.look(); got.State != reconnect.LinkPausing || got.Failed != 0 || !errors.Is(got.LastErr, d.Err) || !got.NextTry.Equal(d.NextTry) {
			r.t.Errorf("after %+v: %+v", d, got)
		}
		r.ended()
		r.accept()
		r.finish()
		if left := reconnect.Links(r.Runtime()); len(left) > 0 {
			r.t.Errorf("behind Closed: %+v", left)
		}
	})
}

// Each state can be seen while it lasts.
func TestLinkStates(t *testing.T) {
	line := reconnect.NewLimiter(0, 0)
	for want, cfg := range map[reconnect.LinkState]reconnect.Config{
		reconnect.LinkResolving: {Resolve: func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}},
		reconnect.LinkQueueing: {Limiter: line},
		reconnect.LinkDialling: {}, // the server does not answer
	} {
		t.Run(want.String(), func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.serve()
				for ok := cfg.Limiter != nil; ok; { // every place is taken
					ok, _ = line.Ticket(nil, there, func() {}).Enter(r.Now())
				}
				r.spawn(cfg)
				began := r.Now()
				r.Wait()
				if got := r.look(); got.State != want || !got.Since.Equal(began) || !got.NextTry.IsZero() {
					r.t.Errorf("%+v", got)
				}
				if want == reconnect.LinkDialling {
					actortest.Next[*rdma.ConnectRequest](r.server)
					r.server.Request(r.server.Sender(), &rdma.Reject{})
				}
				r.finish()
			})
		})
	}
	if text := reconnect.LinkState(99).String(); text != "state 99" {
		t.Error(text)
	}
}

// A link without an address waits for its peer's dial, and shows the address that it learns.
func TestLinkWaiting(t *testing.T) {
	inRig(t, func(r *rig) {
		p := reconnect.NewPeers(reconnect.PeersConfig{Node: 1, Incarnation: 1})
		r.link = reconnect.Spawn(r.Runtime(), r.owner.PID(), reconnect.Config{Peers: p, Peer: 2})
		r.Wait()
		if got := r.look(); got.State != reconnect.LinkWaiting || got.Addr != "" {
			r.t.Errorf("%+v", got)
		}
		r.owner.Send(r.link, reconnect.Address{Addr: there})
		actortest.Next[*reconnect.Down](r.owner)
		if got := r.look(); got.State != reconnect.LinkPausing || got.Addr != there || got.Failed != 1 {
			r.t.Errorf("%+v", got)
		}
		r.finish()
	})
}

// The reason in a peer's rejection is bounded, and nothing in it reaches a terminal.
func TestLinkHostileReason(t *testing.T) {
	for name, said := range map[string][]byte{
		"escapes":  bytes.Repeat([]byte("\x1b[2J"), 30),
		"no UTF-8": bytes.Repeat([]byte{0xff, 0xfe}, 60),
		"a text":   bytes.Repeat([]byte("a"), 120),
	} {
		t.Run(name, func(t *testing.T) {
			onFlavors(t, func(r *rig) {
				r.serve()
				r.spawn(reconnect.Config{Permanent: func(rdma.Failure) bool { return false }})
				actortest.Next[*rdma.ConnectRequest](r.server)
				r.server.Request(r.server.Sender(), &rdma.Reject{PrivateData: said})
				actortest.Next[*reconnect.Down](r.owner)
				text := r.look().LastErr.Error()
				if len(text) > 1024 || !utf8.ValidString(text) || bytes.ContainsAny([]byte(text), "\x1b\n") {
					r.t.Errorf("%d bytes: %q", len(text), text)
				}
				r.finish()
			})
		})
	}
}

// A thousand links that fail again and again are listed in the order of their start, to readers on
// separate goroutines, until they have ended.
func TestThousandLinks(t *testing.T) {
	links := 1000
	if testing.Short() {
		links = 200
	}
	inRig(t, func(r *rig) {
		stop := make(chan struct{})
		var readers sync.WaitGroup
		defer readers.Wait()
		defer close(stop)
		for range 3 {
			readers.Go(func() {
				for {
					for _, l := range reconnect.Links(r.Runtime()) {
						_ = fmt.Sprint(l.Who, l.State, l.LastErr)
					}
					select {
					case <-stop:
						return
					case <-time.After(50 * time.Millisecond):
					}
				}
			})
		}
		owner := r.System().Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}, r.Runtime().OnLoop()))
		pids := make([]*actor.PID, links)
		for i := range pids {
			pids[i] = reconnect.Spawn(r.Runtime(), owner, reconnect.Config{Dial: rdma.Dial{Addr: there}})
		}
		r.Advance(10 * time.Second)
		got := reconnect.Links(r.Runtime())
		for i, l := range got {
			if !l.Who.Equal(pids[i]) || l.State == 0 {
				r.t.Fatalf("number %d: %+v, want %v", i, l, pids[i])
			}
		}
		for _, pid := range pids[1:] {
			r.System().Root.Send(pid, &rdma.DestroyID{})
		}
		r.Wait()
		if left := reconnect.Links(r.Runtime()); len(got) != links || len(left) != 1 {
			r.t.Errorf("%d links, and %d when all but one have ended", len(got), len(left))
		}
		_ = r.System().Root.StopFuture(owner).Wait() // the last one ends with its owner
		r.Wait()
		if left := reconnect.Links(r.Runtime()); len(left) > 0 {
			r.t.Errorf("%+v", left)
		}
	}, actortest.Config{Runtime: rdma.Config{Logger: quiet}})
}
