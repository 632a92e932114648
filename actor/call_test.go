package actor

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// An owner reaches the verbs through Call: it reads the bytes that its peer has written into
// private memory, which no message of this package does, on an identifier that is otherwise used as
// always.
func TestCallReachesTheVerbs(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect()
		var mr *verbs.MR
		p.server.send(p.s, &Call{Fn: func(id *cmid.ID) (err error) {
			if !w.far.loops[0].el.OnLoop() {
				w.Error("called on another goroutine than the loop's")
			}
			mr, err = id.Device().Alloc(64, verbs.LocalWrite)
			return err
		}})
		d, from := next[*Done](p.server)
		if _, ok := d.Command.(*Call); !ok || !from.Equal(p.s) {
			w.Errorf("answered with %v", d)
		}
		p.server.send(p.s, &Call{Fn: func(id *cmid.ID) error { return id.Device().Free(mr) }})
		next[*Done](p.server)
		p.server.send(p.s, &Call{Fn: func(id *cmid.ID) error { return id.Device().Free(mr) }})
		f, _ := next[*CommandFailed](p.server)
		is(w, f, unix.EINVAL)
		p.client.send(p.c, NewSend([]byte("as ever")))
		if g := p.server.any(); g.data != "as ever" {
			w.Errorf("got %v", g)
		}
	})
}

// datagrams is an owner's queue pair on a datagram identifier, made in a Call, as OnLoop owners
// may.
type datagrams struct {
	dev verbs.Device
	cq  verbs.CQ
	qp  verbs.QP
	mr  *verbs.MR
	ah  verbs.AH
	got func(payload string)
}

const halfOfDatagrams = 512 // of the memory: the first is received into, the second sent from

func (d *datagrams) open(id *cmid.ID) (err error) {
	d.dev = id.Device()
	if d.cq, err = d.dev.CreateCQ(16, d.poll); err != nil {
		return err
	}
	attr := verbs.QPInitAttr{SendCQ: d.cq, RecvCQ: d.cq, MaxSendWR: 1, MaxRecvWR: 1}
	if d.qp, err = id.CreateQP(attr); err != nil {
		return err
	}
	if d.mr, err = d.dev.Alloc(2*halfOfDatagrams, verbs.LocalWrite); err != nil {
		return err
	}
	return d.qp.PostRecv(verbs.RecvWR{ID: 1, SGE: verbs.SGE{MR: d.mr, Length: halfOfDatagrams}})
}

func (d *datagrams) poll() {
	var wc [1]verbs.WC
	for d.cq.Poll(wc[:]) > 0 {
		if wc[0].Op == verbs.Recv && wc[0].Status == verbs.StatusSuccess {
			d.got(string(d.mr.Bytes[verbs.GRHLen:wc[0].Bytes]))
		}
	}
}

func (d *datagrams) send(to *cmid.UDParam, payload string) (err error) {
	if d.ah, err = d.dev.CreateAH(nil, &to.AH); err != nil {
		return err
	}
	n := copy(d.mr.Bytes[halfOfDatagrams:], payload)
	return d.qp.PostSend(&verbs.SendWR{
		Op: verbs.Send, Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: d.mr, Offset: halfOfDatagrams, Length: uint32(n)}},
		AH: d.ah, RemoteQPN: to.QPN, RemoteQKey: to.QKey,
	})
}

// close is called when the identifier, and the queue pair with it, is gone.
func (d *datagrams) close() (err error) {
	d.poll()
	if d.ah != nil {
		err = d.ah.Close()
	}
	return errors.Join(err, d.dev.Free(d.mr), d.cq.Close())
}

// A datagram goes from one owner's queue pair to another's.
func TestDatagramsThroughCall(t *testing.T) {
	inWorld(t, infiniband, func(w *world) { datagram(w, w.sys, w.rt, w.far, there, IDConfig{PortSpace: cmid.PortSpaceUDP}) })
}

// datagram sends a datagram from rt to far, which has the address at.
func datagram(tb testing.TB, sys *actor.ActorSystem, rt, far *Runtime, at string, cfg ...IDConfig) {
	came := make(chan string, 1)
	server := newProbe(tb, sys, far.OnLoop(), nil)
	theirs := &datagrams{got: func(s string) { came <- s }}
	server.reactWith(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *ConnectRequest:
			ctx.Request(ctx.Sender(), &Call{Fn: theirs.open})
		case *Done:
			ctx.Request(ctx.Sender(), &Accept{})
		}
	})
	listener := far.CreateID(server.pid, one(cfg))
	server.send(listener, &cmid.BindAddr{Addr: MustAddr(at + ":7471")})
	next[*cmid.Bound](server)
	server.send(listener, &Listen{})
	next[*Listening](server)

	ours := &datagrams{got: func(string) {}}
	client := newProbe(tb, sys, rt.OnLoop(), func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *cmid.AddrResolved:
			ctx.Request(ctx.Sender(), &cmid.ResolveRoute{})
		case *cmid.RouteResolved:
			ctx.Request(ctx.Sender(), &Call{Fn: ours.open})
		case *Done:
			ctx.Request(ctx.Sender(), &Connect{})
		case *Established:
			if err := ours.send(m.UD, "hello"); err != nil {
				tb.Error(err)
			}
		case *Closed:
			if err := ours.close(); err != nil {
				tb.Error(err)
			}
		}
	})
	c := rt.CreateID(client.pid, one(cfg))
	client.send(c, &cmid.ResolveAddr{Dst: MustAddr(at + ":7471")})
	until[*Established](client)
	select {
	case s := <-came:
		if s != "hello" {
			tb.Errorf("got %q", s)
		}
	case <-time.After(patience):
		tb.Error("no datagram came")
	}
	client.send(c, NewSend([]byte("no message's way")))
	next[*SendFailed](client)
	client.send(c, &DestroyID{})
	next[*Closed](client)
	var s *actor.PID
	for len(server.got) > 0 {
		if g := <-server.got; !g.sender.Equal(listener) {
			s = g.sender
		}
	}
	server.reactWith(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*Closed); ok && ctx.Sender().Equal(s) {
			if err := theirs.close(); err != nil {
				tb.Error(err)
			}
		}
	})
	server.send(s, &DestroyID{})
	next[*Closed](server)
}

// A datagram request that was accepted is answered: its deadline does not destroy the identifier.
func TestAcceptedDatagramRequestHasNoDeadline(t *testing.T) {
	inWorld(t, infiniband, func(w *world) {
		server, client := w.farProbe(), w.probe()
		cfg := IDConfig{PortSpace: cmid.PortSpaceUDP}
		listener, c := w.far.CreateID(server.pid, cfg), w.rt.CreateID(client.pid, cfg)
		server.send(listener, &cmid.BindAddr{Addr: MustAddr(there + ":7471")})
		next[*cmid.Bound](server)
		server.send(listener, &Listen{})
		next[*Listening](server)
		client.send(c, &cmid.ResolveAddr{Dst: MustAddr(there + ":7471")})
		next[*cmid.AddrResolved](client)
		client.send(c, &cmid.ResolveRoute{})
		next[*cmid.RouteResolved](client)
		client.send(c, &Connect{})
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](server)
		time.Sleep(time.Minute)
		if state, ok := w.state(s); !ok || state != states.Connected {
			w.Errorf("a minute later the identifier is %v", state)
		}
	})
}
