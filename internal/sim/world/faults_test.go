package world

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// again is a script: clients connect, send, and reconnect whenever their connection has ended,
// while every fault happens to them and to their server. After the faults each must get answers.
func again(w *World) {
	r := w.Rand("faults")
	addr := "10.0.0.1:7471"
	server := w.Machine("server", "10.0.0.1/24")
	serve := func(p *Process) {
		for p.Context().Err() == nil { // ListenAndServe ends when its device is removed
			rt, err := p.Open(rdma.Config{})
			if err != nil {
				w.Fail("open: %v", err)
				return
			}
			owner := p.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				switch m := ctx.Message().(type) {
				case *rdma.ConnectRequest:
					ctx.Respond(&rdma.Accept{})
				case *rdma.Received:
					ctx.Respond(rdma.NewSend(m.Data))
				}
			}, rt.OnLoop()))
			err = rt.ListenAndServe(p.Context(), addr, owner)
			w.Trace("%s: %v", p.Name(), err != nil)
			p.Sleep(time.Second)
		}
	}
	server.Start(serve)
	machines := []*Machine{server}
	got := make([]int, 2)
	for i := range got {
		m := w.Machine(fmt.Sprint("client", i), fmt.Sprintf("10.0.0.%d/24", i+2))
		machines = append(machines, m)
		m.Start(func(p *Process) { ask(p, addr, &got[i]) })
	}
	w.RunFor(time.Second)
	for range 4 {
		disturb(w, r, machines, serve)
		w.RunFor(time.Duration(r.Int64N(int64(20 * time.Second))))
	}
	w.Latency(0, 0, 0)
	w.Scarce(0)
	for i, m := range machines {
		m.PowerOn()
		m.AddDevice()
		for _, other := range machines[:i] {
			m.Heal(other)
		}
		for _, p := range m.Processes() {
			p.Thaw()
		}
	}
	if len(server.Processes()) == 0 {
		server.Start(serve)
	}
	w.RunFor(time.Minute)
	before := []int{got[0], got[1]}
	if !w.RunUntil(2*time.Minute, func() bool { return got[0] > before[0] && got[1] > before[1] }) {
		w.Fail("no answers after the faults: %v, then %v", before, got)
	}
}

// ask connects repeatedly, and counts answers.
func ask(p *Process, addr string, got *int) {
	rt, err := p.Open(rdma.Config{Keepalive: rdma.Keepalive{Idle: 3 * time.Second}})
	if err != nil {
		p.World().Fail("open: %v", err)
		return
	}
	type next struct{}
	p.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *actor.Started, next:
			ctx.Send(rt.CreateID(ctx.Self()), &rdma.Dial{Addr: addr})
		case *rdma.Established:
			ctx.Respond(rdma.NewSend([]byte("hello")))
		case *rdma.Received:
			*got++
			p.World().Trace("%s got %d", p.Name(), *got)
			id, data := ctx.Sender(), append([]byte(nil), m.Data...)
			self := ctx.Self()
			p.Go(func() {
				p.Sleep(300 * time.Millisecond)
				p.System().Root.RequestWithCustomSender(id, rdma.NewSend(data), self)
			})
		case *rdma.Closed:
			self := ctx.Self()
			p.Go(func() {
				p.Sleep(time.Second)
				p.System().Root.Send(self, next{})
			})
		}
	}, rt.OnLoop()))
}

// disturb starts one fault.
func disturb(w *World, r interface{ IntN(int) int }, machines []*Machine, serve func(*Process)) {
	m, other := machines[0], machines[1+r.IntN(2)]
	switch what := r.IntN(10); what {
	case 0:
		for _, p := range m.Processes() {
			w.Trace("kill")
			p.Kill()
		}
		if !m.off {
			m.Start(serve)
		}
	case 1:
		w.Trace("freeze")
		for _, p := range machines[r.IntN(3)].Processes() {
			p.Freeze()
		}
	case 2:
		w.Trace("power off")
		m.PowerOff()
	case 3:
		w.Trace("cut")
		m.Cut(other, r.IntN(2) == 0)
	case 4:
		w.Trace("latency")
		w.Latency(20*time.Millisecond, 100*time.Millisecond, 0.1)
	case 5:
		w.Trace("remove")
		machines[r.IntN(3)].RemoveDevice()
	case 6:
		w.Trace("scarce")
		w.Scarce(0.1)
	case 7:
		w.Trace("reset")
		m.Reset(w.order)
	case 8:
		w.Trace("reorder")
		w.Reorder(true)
	case 9:
		if !m.off {
			w.Trace("power off and on")
			m.PowerOff()
			m.PowerOn()
			m.Start(serve)
		}
	}
}

// seeds returns n, or a quarter of it with -short.
func seeds(n uint64) uint64 {
	if testing.Short() {
		return n / 4
	}
	return n
}

func TestFaults(t *testing.T) {
	for _, kind := range []Kind{Embedded, Twin, TwinSoftRoCE, TwinSIW} {
		for seed := range seeds(30) {
			t.Run(fmt.Sprint(kind, seed), func(t *testing.T) { twice(t, Config{Seed: seed, Kind: kind}, again) })
		}
	}
}
