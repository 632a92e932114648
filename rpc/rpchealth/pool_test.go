package rpchealth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/actor/actortest"
	"github.com/rdmactor/rdmactor/rpc"
)

var who = rpc.NewRawMethod("test.Who")

const orders = "shop.Orders"

// fleet is servers, of which all but the last have the service, and a pool that watches orders.
type fleet struct {
	*actortest.World
	servers []*rpc.Server
	health  []*Health
	pool    *rpc.Client
}

// inFleet runs test with n servers. All serve.
func inFleet(t *testing.T, n int, server rpc.ServerConfig, client rpc.ClientConfig, test func(f *fleet)) {
	t.Helper()
	actortest.Run(t, actortest.Config{}, func(w *actortest.World) {
		f := &fleet{World: w}
		var addrs []string
		for i := range n {
			s := rpc.NewServer(w.Host(fmt.Sprintf("mem%d", i+1), fmt.Sprintf("10.0.0.%d", i+2)), server)
			defer s.Close()
			rpc.HandleRaw(s, who, func(_ context.Context, _, reply []byte) ([]byte, error) { return fmt.Append(reply, i), nil })
			if i < n-1 {
				h := Register(s)
				h.Set(orders, true)
				f.health = append(f.health, h)
			}
			addr, err := s.Listen(w.T().Context(), fmt.Sprintf("10.0.0.%d:7471", i+2))
			if err != nil {
				w.T().Fatal(err)
			}
			f.servers, addrs = append(f.servers, s), append(addrs, addr.String())
		}
		client.Service.Health = new(orders)
		f.pool = rpc.NewPool(w.Runtime(), rpc.Static(addrs...), rpc.PoolConfig{ClientConfig: client, Balance: rpc.RoundRobin, SlowStart: -1})
		defer f.pool.Close()
		test(f)
	})
}

// want asserts which servers get calls, and that Servers reports the same.
func (f *fleet) want(servers string) {
	f.T().Helper()
	f.Wait()
	if err := f.pool.Connect(f.T().Context()); err != nil {
		f.T().Error(err)
	}
	f.Wait()
	got, reported := "", ""
	for i, s := range f.pool.Servers() {
		if s.Serving {
			reported += fmt.Sprint(i)
			if s.Err != nil {
				f.T().Errorf("server %d serves, and its error is %v", i, s.Err)
			}
		}
	}
	answers := make(map[string]bool)
	for range 10 * len(f.servers) {
		a, err := rpc.CallRaw(f.T().Context(), f.pool, who, nil, nil)
		if err != nil {
			f.T().Fatal(err)
		}
		answers[string(a)] = true
	}
	for i := range f.servers {
		if answers[fmt.Sprint(i)] {
			got += fmt.Sprint(i)
		}
	}
	if got != servers || reported != servers {
		f.T().Errorf("servers %s get calls, %s are reported to serve, want %s", got, reported, servers)
	}
}

// A pool calls the servers that serve, however few, and those without the service.
func TestPoolFollowsHealth(t *testing.T) {
	inFleet(t, 4, rpc.ServerConfig{}, rpc.ClientConfig{}, func(f *fleet) {
		f.health[0].Set(orders, false)
		f.want("123")
		f.health[1].Set(orders, false)
		f.health[2].Set("", false) // another service
		f.want("23")
		f.health[0].Set(orders, true)
		f.want("023")
		f.health[0].Set(orders, false)
		f.health[2].Set(orders, false)
		f.want("3")
		_ = f.servers[3].Shutdown(f.T().Context())
		f.health[1].Set(orders, true)
		f.Wait()
		f.want("1")
	})
}

// Calls fail while no server serves, unless they wait until one does.
func TestNoServerServes(t *testing.T) {
	for _, waits := range []bool{false, true} {
		inFleet(t, 3, rpc.ServerConfig{}, rpc.ClientConfig{WaitForReady: waits}, func(f *fleet) {
			f.servers[2].Close()
			f.health[0].Set(orders, false)
			f.health[1].Set(orders, false)
			ctx, cancel := context.WithTimeout(f.T().Context(), time.Minute)
			defer cancel()
			failed := make(chan error, 1)
			go func() {
				_, err := rpc.CallRaw(ctx, f.pool, who, nil, nil)
				failed <- err
			}()
			f.Wait()
			if waits {
				f.Advance(time.Second)
				f.health[1].Set(orders, true)
				if err := <-failed; err != nil {
					f.T().Error(err)
				}
				return
			}
			var e *rpc.Error
			if len(failed) == 0 {
				f.T().Error("a call goes on waiting when all servers have reported")
			}
			if err := <-failed; !errors.Is(err, rpc.ErrUnavailable) || !errors.As(err, &e) || e.Fate != rpc.FateNotSent {
				f.T().Errorf("%v, want ErrUnavailable", err)
			}
			f.servers[1].Close()
			f.health[0].Set(orders, true)
			f.want("0")
			f.health[0].Set(orders, false)
			f.Wait()
			if _, err := rpc.CallRaw(ctx, f.pool, who, nil, nil); err == nil || !strings.Contains(err.Error(), `does not serve: "shop.Orders"`) {
				f.T().Errorf("%v, want that the server does not serve", err)
			}
		})
	}
}

// The watch ends with the use of a connection, and does not keep an old one open. No call fails.
func TestWatchMovesToTheNextConnection(t *testing.T) {
	old := rpc.ServerConfig{MaxConnectionAge: time.Minute, MaxConnectionAgeGrace: 10 * time.Second}
	inFleet(t, 3, old, rpc.ClientConfig{}, func(f *fleet) {
		f.health[1].Set(orders, false)
		f.want("02")
		since := f.pool.Servers()
		for range 300 {
			f.want("02")
			f.Advance(time.Second)
		}
		for i, s := range f.pool.Servers() {
			if s.Connected.Equal(since[i].Connected) {
				f.T().Errorf("server %d has not asked for another connection", i)
			}
		}
		for i, h := range f.health {
			if n := f.servers[i].InFlight(); n != 1 {
				f.T().Errorf("server %d has %d streams, want 1", i, n)
			}
			h.Set(orders, i == 1)
		}
		f.want("12")
	})
}

// A server whose health is unknown, because it takes no further streams, serves. The pool tries
// again to watch it.
func TestWatchIsRefused(t *testing.T) {
	inFleet(t, 2, rpc.ServerConfig{MaxStreamsInAll: 1}, rpc.ClientConfig{}, func(f *fleet) {
		c := rpc.NewClient(f.Runtime(), "10.0.0.2:7471")
		defer c.Close()
		ctx, cancel := context.WithCancel(f.T().Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range Watch(ctx, c, "") { //nolint:revive // it ends with ctx
			}
		}()
		f.Wait()
		f.want("01")
		f.health[0].Set(orders, false)
		f.want("01")
		cancel()
		<-ended
		f.Advance(time.Minute)
		f.want("1")
	})
}
