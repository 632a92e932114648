//go:build linux && rdma

package actor

import (
	"testing"
	"time"
)

// AckTimeout and RetryCount determine how soon a peer that acknowledges nothing is noticed, on
// whichever side they are set. A timeout is lost for each of the sends.
func TestFaultTransportNotices(t *testing.T) {
	if env(t, "RDMA_KIND") != "rxe" {
		t.Skip("iWARP has TCP's timers")
	}
	leavesNothing(t)
	quick := Transport{AckTimeout: 250 * time.Millisecond, RetryCount: 1}
	slow := Transport{AckTimeout: time.Second, RetryCount: 4}
	const least = 5 * time.Second // of slow
	for name, tt := range map[string]struct{ client, server Transport }{
		"who has dialled": {quick, slow}, "who has accepted": {slow, quick},
	} {
		t.Run(name, func(t *testing.T) {
			sooner := noticed(t, tt.client, tt.server, name == "who has dialled")
			later := noticed(t, tt.server, tt.client, name == "who has dialled")
			t.Logf("%+v: after %v; %+v: after %v", quick, sooner, slow, later)
			if sooner >= least || later < least {
				t.Errorf("noticed after %v and %v, want less and more than %v", sooner, later, least)
			}
		})
	}
}

// noticed connects two runtimes and has one side's queue pair vanish. It returns how long the other
// side, which then sends, takes to notice: the side that has dialled, or the other one.
func noticed(t *testing.T, client, server Transport, dialled bool) time.Duration {
	t.Helper()
	rt := openKernel(t, testSystem(t), Config{Transport: client})
	far := openKernel(t, rt.sys, Config{Transport: server})
	p := pair{client: newProbe(t, rt.sys, rt.OnLoop(), nil), server: newProbe(t, rt.sys, far.OnLoop(), nil)}
	lis, at := listen(p.server, far, env(t, "RDMA_ADDR")+":0")
	p.listener, p.c = lis, rt.CreateID(p.client.pid, IDConfig{})
	p.client.send(p.c, &Dial{Addr: at})
	_, p.s = next[*ConnectRequest](p.server)
	p.server.send(p.s, &Accept{})
	next[*Established](p.server)
	next[*Established](p.client)
	who, id, dead, its, itsProbe := p.client, p.c, far, p.s, p.server
	if !dialled {
		who, id, dead, its, itsProbe = p.server, p.s, rt, p.c, p.client
	}
	goOn := dead.vanish(t, its)
	defer goOn()
	begin := time.Now()
	who.send(id, NewSend([]byte("you there?")))
	is(t, endOf(t, who), ErrPeerLost)
	took := time.Since(begin)
	goOn()
	until[*Closed](itsProbe)
	return took
}
