package main

import (
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/verbs"
)

// peer is one side of a connection at verbs level: an identifier, its queue pair, and the loop they live on. The functions are the
// application; their errors end the peer.
type peer struct {
	ch  *cmid.Channel
	id  *cmid.ID
	dev verbs.Device
	cq  verbs.CQ
	qp  verbs.QP

	prepare  func() (private []byte, err error) // there is a queue pair, and no connection yet
	up       func(private []byte) error
	complete func(wc *verbs.WC) error
	down     func() error
	done     chan error
}

const peerDepth = 64 // work requests outstanding, each queue

func newPeer() *peer { return &peer{done: make(chan error, 1)} }

// run has begin called on a loop of the peer's, and waits until the peer is at its end.
func (p *peer) run(begin func() error, opts ...iwarp.Option) error {
	loop, err := eventloop.New(eventloop.Config{Name: "figures"})
	if err != nil {
		return err
	}
	if p.ch, err = cmid.NewChannel(loop, iwarp.New(opts...), p.event); err != nil {
		return err
	}
	if err := loop.Post(func() { p.check(begin()) }); err != nil {
		return err
	}
	loop.Start()
	return <-p.done
}

// end ends the peer. Only the first call counts.
func (p *peer) end(err error) {
	select {
	case p.done <- err:
	default:
	}
}

func (p *peer) check(err error) {
	if err != nil {
		p.end(err)
	}
}

// listen prints the address.
func (p *peer) listen() error {
	id, err := p.ch.CreateID(cmid.PortSpaceTCP)
	if err != nil {
		return err
	}
	if err := p.do(id, &cmid.BindAddr{Addr: cmid.MustAddr("127.0.0.1:0")}); err != nil {
		return err
	}
	if err := p.do(id, &cmid.Listen{}); err != nil {
		return err
	}
	fmt.Println(id.LocalAddr())
	return nil
}

func (p *peer) dial(addr string) (err error) {
	if p.id, err = p.ch.CreateID(cmid.PortSpaceTCP); err != nil {
		return err
	}
	return p.do(p.id, &cmid.ResolveAddr{Dst: cmid.MustAddr(addr)})
}

func (p *peer) do(id *cmid.ID, cmd cmid.Command) error {
	if f, ok := id.Do(cmd).(cmid.Failure); ok {
		return f
	}
	return nil
}

func (p *peer) event(id *cmid.ID, ev cmid.Event, _ cmid.Command) {
	p.check(func() error {
		switch ev := ev.(type) {
		case *cmid.AddrResolved:
			return p.do(id, &cmid.ResolveRoute{})
		case *cmid.RouteResolved:
			private, err := p.ready()
			if err != nil {
				return err
			}
			return p.do(id, &cmid.Connect{PrivateData: private})
		case *cmid.ConnectRequest:
			p.id = id
			private, err := p.ready()
			if err != nil {
				return err
			}
			return p.do(id, &cmid.Accept{PrivateData: private})
		case *cmid.Established:
			return p.up(ev.PrivateData)
		case *cmid.Disconnected:
			return p.down()
		case cmid.Failure:
			return ev
		}
		return nil
	}())
}

// ready makes the queue pair.
func (p *peer) ready() (private []byte, err error) {
	p.dev = p.id.Device()
	if p.cq, err = p.dev.CreateCQ(2*peerDepth, p.poll); err != nil {
		return nil, err
	}
	p.qp, err = p.id.CreateQP(verbs.QPInitAttr{SendCQ: p.cq, RecvCQ: p.cq, MaxSendWR: peerDepth, MaxRecvWR: peerDepth})
	if err != nil {
		return nil, err
	}
	return p.prepare()
}

func (p *peer) poll() {
	var wc [16]verbs.WC
	for {
		n := p.cq.Poll(wc[:])
		if n == 0 {
			return
		}
		for i := range wc[:n] {
			switch wc[i].Status {
			case verbs.StatusSuccess:
				p.check(p.complete(&wc[i]))
			case verbs.StatusFlushed:
			default:
				p.end(fmt.Errorf("a completion says %v", wc[i].Status))
			}
		}
	}
}
