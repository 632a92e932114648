package rpc

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/actor/actortest"
)

// The servers change while calls are in flight: those of a server that left the list are answered,
// then its connection is closed.
func TestServersChange(t *testing.T) {
	inFleet(t, 3, PoolConfig{}, func(f *fleet) {
		var l listed
		c := NewPool(f.Runtime(), &l)
		defer c.Close()
		waits := make(chan error, 1)
		go func() {
			_, err := CallRaw(f.t.Context(), c, who, nil, nil)
			waits <- err
		}()
		f.Wait()
		l.update(nil, errors.New("no name server"))
		if err := <-waits; !errors.Is(err, ErrUnavailable) {
			f.t.Errorf("without servers: %v", err)
		}
		l.update(f.addrs()[:1], nil)
		in, err := Open(f.t.Context(), c, count, wrapperspb.Int64(5))
		if err != nil {
			f.t.Fatal(err)
		}
		l.update(nil, errors.New("no name server")) // says nothing new
		l.update(f.addrs()[1:], nil)
		if got, err := CallRaw(f.t.Context(), c, who, nil, nil); err != nil || string(got) == f.members[0].addr {
			f.t.Errorf("%q, %v", got, err)
		}
		n := 0
		for _, err = range in.All() {
			n++
		}
		if n != 5 || err != nil && !errors.Is(err, io.EOF) {
			f.t.Errorf("%d items, %v", n, err)
		}
		f.Wait()
		if n := len(f.members[0].rt.Inspect()); n != 1 { // it listens
			f.t.Errorf("the server that left has %d identifiers", n)
		}
		l.update(nil, nil)
		_, err = CallRaw(f.t.Context(), c, who, nil, nil)
		want(f.t, err, ErrUnavailable, FateNotSent)
	})
}

// Each client connects to a part of the servers, and clients to different parts.
func TestSubset(t *testing.T) {
	inFleet(t, 6, PoolConfig{}, func(f *fleet) {
		used := make(map[string]int)
		for range 30 {
			c := NewPool(f.Runtime(), Static(f.addrs()...), PoolConfig{Subset: 2})
			defer c.Close()
			if err := c.Connect(f.t.Context()); err != nil {
				f.t.Fatal(err)
			}
			servers := c.Servers()
			if len(servers) != 2 {
				f.t.Fatalf("%+v", servers)
			}
			for _, s := range servers {
				used[s.Addr]++
			}
		}
		if len(used) != 6 {
			f.t.Errorf("30 clients of 2 servers each use %v of 6", used)
		}
	})
}

// DNS reports what it finds, again after a while, and soon after a failed look-up.
func TestDNS(t *testing.T) {
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		type found struct {
			hosts []string
			err   error
		}
		looks, reports := make(chan found, 1), make(chan found, 1)
		d := DNS("db.internal:7471", time.Minute).(*dns)
		d.lookUp = func(_ context.Context, host string) ([]string, error) {
			if host != "db.internal" {
				w.T().Errorf("looked up %q", host)
			}
			f := <-looks
			return f.hosts, f.err
		}
		stop := d.Watch(w.Runtime(), func(addrs []string, err error) { reports <- found{addrs, err} })
		failed := errors.New("SERVFAIL")
		for _, step := range []struct {
			after       time.Duration
			look, wants found
		}{
			{0, found{hosts: []string{"10.0.0.2", "fd00::2"}}, found{hosts: []string{"10.0.0.2:7471", "[fd00::2]:7471"}}},
			{time.Minute, found{err: failed}, found{err: failed}},
			{time.Second, found{hosts: []string{"10.0.0.3"}}, found{hosts: []string{"10.0.0.3:7471"}}},
		} {
			w.Advance(step.after)
			looks <- step.look
			w.Wait()
			got := <-reports
			if !slices.Equal(got.hosts, step.wants.hosts) || !errors.Is(got.err, step.wants.err) {
				w.T().Errorf("got %v, want %v", got, step.wants)
			}
		}
		stop()
	})
}
