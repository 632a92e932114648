package rpc

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Resolver finds the servers of a pool (NewPool). Static and DNS are Resolvers, and
// remoting/pacluster has one of a cluster's members.
type Resolver interface {
	// Watch calls update with the servers' addresses as Dial takes them: once they are known, and
	// after every change. An error without addresses leaves the servers as they were. Watch does
	// not wait; if it panics, calls fail. update does not block; calls of it follow one another, on
	// any goroutine. stop, which is called once, ends the calls, and returns when none is under
	// way. nil: there is nothing to end. A String method, which NewPool calls, names the servers in
	// errors.
	Watch(rt *rdma.Runtime, update func(addrs []string, err error)) (stop func())
}

// Static is a Resolver of servers whose addresses do not change.
func Static(addrs ...string) Resolver { return static(slices.Clone(addrs)) }

type static []string

func (s static) String() string { return strings.Join(s, ", ") }

func (s static) Watch(_ *rdma.Runtime, update func([]string, error)) func() {
	update(s, nil)
	return func() {}
}

// DNS is a Resolver of all addresses of the host in addr ("orders.internal:7471"), which it looks
// up again and again: every is the time between two look-ups; 0: 30 s. After a failed one it looks
// up again after a second.
func DNS(addr string, every time.Duration) Resolver {
	return &dns{addr: addr, every: positiveOr(every, 30*time.Second), lookUp: net.DefaultResolver.LookupHost}
}

type dns struct {
	addr   string
	every  time.Duration
	lookUp func(ctx context.Context, host string) ([]string, error)
}

// dnsAgain is how long after a failed look-up the next one is made, and dnsTimeout how long one may
// take.
const (
	dnsAgain   = time.Second
	dnsTimeout = 10 * time.Second
)

func (d *dns) String() string { return d.addr }

func (d *dns) Watch(rt *rdma.Runtime, update func([]string, error)) func() {
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	rt.Scheduler().Go(func() {
		defer close(stopped)
		for ctx.Err() == nil {
			addrs, err := d.resolveOnce(ctx)
			again := d.every
			if err != nil {
				again = min(again, dnsAgain)
			}
			if ctx.Err() == nil {
				update(addrs, err)
			}
			pause := time.NewTimer(again)
			select {
			case <-pause.C:
			case <-ctx.Done():
			}
			rt.Scheduler().Resume()
			pause.Stop()
		}
	})
	return func() {
		cancel()
		<-stopped
		rt.Scheduler().Resume()
	}
}

// resolveOnce looks the addresses up once.
func (d *dns) resolveOnce(ctx context.Context) (addrs []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, dnsTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(d.addr)
	if err != nil {
		return nil, err
	}
	hosts, err := d.lookUp(ctx, host)
	if err == nil && len(hosts) == 0 {
		err = errors.New("no address")
	}
	for _, h := range hosts {
		addrs = append(addrs, net.JoinHostPort(h, port))
	}
	return addrs, err
}
