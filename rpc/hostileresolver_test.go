package rpc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// resolverFunc is a Resolver.
type resolverFunc func(update func([]string, error)) (stop func())

func (f resolverFunc) Watch(_ *rdma.Runtime, update func([]string, error)) func() { return f(update) }

// A Resolver that panics, or ends the goroutine, fails the calls of its pool, and nothing else.
func TestResolverPanics(t *testing.T) {
	for name, fails := range map[string]func(){"panic": func() { panic("no servers") }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			inFleet(t, 1, PoolConfig{}, func(f *fleet) {
				c := NewPool(f.Runtime(), resolverFunc(func(func([]string, error)) func() {
					fails()
					return nil
				}))
				var first sync.WaitGroup
				first.Go(func() { // which it may end
					defer func() { _ = recover() }()
					_ = c.Connect(f.t.Context())
				})
				first.Wait()
				_, err := CallRaw(f.t.Context(), c, who, nil, nil)
				want(f.t, err, ErrUnavailable, FateNotSent)
				if _, ok := errors.AsType[*PanicError](err); !ok {
					f.t.Errorf("%v does not wrap the panic", err)
				}
				c.Close()
			})
		})
	}
}

// The stop function of a Resolver is called once, and may panic or be nil: Close ends the
// connections nevertheless.
func TestResolverStops(t *testing.T) {
	for name, stop := range map[string]func(){"nil": nil, "panic": func() { panic("stopped") }} {
		t.Run(name, func(t *testing.T) {
			inFleet(t, 1, PoolConfig{}, func(f *fleet) {
				c := NewPool(f.Runtime(), resolverFunc(func(update func([]string, error)) func() {
					update(f.addrs(), nil)
					return stop
				}))
				if err := c.Connect(f.t.Context()); err != nil {
					f.t.Error(err)
				}
				func() {
					defer func() { _ = recover() }()
					c.Close()
				}()
				f.Wait()
				if n := len(c.links); n > 0 {
					f.t.Errorf("%d connections are left", n)
				}
			})
		})
	}
	inFleet(t, 1, PoolConfig{}, func(f *fleet) {
		stops := 0
		var c *Client
		c = NewPool(f.Runtime(), resolverFunc(func(update func([]string, error)) func() {
			c.Close()
			update(f.addrs(), nil)
			return func() { stops++ }
		}))
		if err := c.Connect(f.t.Context()); !errors.Is(err, ErrClosed) {
			f.t.Errorf("%v, want ErrClosed", err)
		}
		c.Close()
		if stops != 1 || len(c.links) > 0 {
			f.t.Errorf("stopped %d times, %d connections", stops, len(c.links))
		}
	})
}

// named is a Resolver whose String asks the pool.
type named struct {
	resolverFunc
	c *Client
}

func (n *named) String() string {
	if n.c != nil {
		n.c.Servers()
	}
	return "named"
}

// The String method of a Resolver may use the pool.
func TestResolverStringUsesThePool(t *testing.T) {
	inFleet(t, 1, PoolConfig{}, func(f *fleet) {
		n := &named{resolverFunc: func(update func([]string, error)) func() {
			update(nil, errors.New("no name server"))
			return func() {}
		}}
		n.c = NewPool(f.Runtime(), n)
		defer n.c.Close()
		if err := n.c.Connect(f.t.Context()); !errors.Is(err, ErrUnavailable) {
			f.t.Error(err)
		}
	})
}

// Lists that change every millisecond, have servers twice, or are empty, cost no call and leave no
// connections behind.
func TestServersFlip(t *testing.T) {
	inFleet(t, 4, PoolConfig{}, func(f *fleet) {
		var l listed
		c := NewPool(f.Runtime(), &l)
		defer c.Close()
		go func() { _ = c.Connect(f.t.Context()) }()
		f.Wait()
		l.update(f.addrs(), nil)
		f.Wait()
		ctx, cancel := context.WithCancel(f.t.Context())
		var all sync.WaitGroup
		failed := make(map[string]int)
		var mu sync.Mutex
		for range 10 {
			all.Go(func() {
				for ctx.Err() == nil {
					if _, err := CallRaw(f.t.Context(), c, who, nil, nil); err != nil {
						mu.Lock()
						failed[err.Error()]++
						mu.Unlock()
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		most := 0
		for i := range 500 {
			list := f.addrs()
			list = slices.Concat(list[:1], list[1+i%3:], list[:1])
			l.update(list, nil)
			time.Sleep(time.Millisecond)
			c.mu.Lock()
			most = max(most, len(c.links))
			c.mu.Unlock()
		}
		cancel()
		all.Wait()
		if len(failed) > 0 {
			f.t.Errorf("calls failed: %v", failed)
		}
		if most > 20 {
			f.t.Errorf("%d connections to 4 servers", most)
		}
		l.update(nil, nil)
		f.Advance(time.Minute)
		if n := len(c.links); n > 0 {
			f.t.Errorf("%d connections to no servers", n)
		}
	})
}

// A change of a long list takes little time, because all calls wait for it.
func BenchmarkServersChange(b *testing.B) {
	var addrs []string
	c := &Client{pool: &PoolConfig{}}
	for i := range 10_000 {
		addrs = append(addrs, fmt.Sprintf("10.%d.%d.1:7471", i/256, i%256))
	}
	addrs = c.chooseSubset(addrs)
	for _, addr := range addrs {
		c.endpoints = append(c.endpoints, &endpoint{c: c, addr: addr})
	}
	for b.Loop() {
		c.setServers(addrs, nil)
	}
}
