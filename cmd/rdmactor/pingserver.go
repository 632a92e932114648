package main

import (
	"errors"
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/endpoint"
	"github.com/rdmactor/rdmactor/verbs"
)

const backlog = 128

// pingServer is the role of -s: a listener and its connections.
type pingServer struct {
	s        *session
	listener *cmid.ID // nil: no more clients are accepted
}

func (srv *pingServer) start(addr cmid.Addr) error {
	id, err := endpoint.Listen(srv.s.ch.Channel, cmid.PortSpaceTCP, addr, backlog)
	if err != nil {
		return err
	}
	srv.listener = id
	fmt.Fprintf(srv.s.stdout, "listening on %v\n", id.LocalAddr())
	return nil
}

func (srv *pingServer) handleOther(id *cmid.ID, ev cmid.Event) error {
	switch e := ev.(type) {
	case *cmid.ConnectRequest:
		return srv.acceptClient(id)
	case cmid.Failure:
		return e
	}
	return nil
}

func (srv *pingServer) acceptClient(id *cmid.ID) error {
	if srv.listener == nil {
		return errors.Join(id.Reject(nil), id.Destroy())
	}
	t := &serving{s: srv.s}
	t.c = srv.s.newConn(id, t)
	t.c.startStep("accepting")
	if err := t.acceptRequest(); err != nil { // it ends only this client's connection
		t.c.fail(err)
		t.c.over = true
	}
	if srv.s.persistent {
		return nil
	}
	return srv.closeListener()
}

// closeListener closes the listener, so that further clients are refused.
func (srv *pingServer) closeListener() error {
	id := srv.listener
	srv.listener = nil
	if id == nil {
		return nil
	}
	return id.Destroy()
}

func (srv *pingServer) stop() error {
	for _, c := range srv.s.conns {
		if !c.ending && !c.over {
			c.hangUp()
		}
	}
	return srv.closeListener()
}

func (srv *pingServer) handleOutcome(c *conn, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("client %v: %w", c.ID.PeerAddr(), err)
	if !srv.s.persistent {
		return err
	}
	fmt.Fprintln(srv.s.stderr, "rdmactor: ping:", err)
	return nil
}

func (srv *pingServer) isOver() bool { return srv.listener == nil && len(srv.s.conns) == 0 }

// serving is the server's talk with one client.
type serving struct {
	s    *session
	c    *conn
	data *verbs.MR // the round's data, read and then written
	n    uint32    // length of the data in bytes
	at   stage
}

// stage is the event that a server waits for.
type stage uint8

const (
	theSource stage = iota // the client's buffer to read
	theRead                // the server's Read of it
	theSink                // the client's buffer to write
)

func (t *serving) acceptRequest() (err error) {
	if err := t.c.setUpQueuePair(); err != nil {
		return err
	}
	if t.data, err = t.c.Alloc(t.s.size, verbs.LocalWrite); err != nil {
		return err
	}
	t.c.startStep("the client's source") // its message may arrive before Established does
	return t.c.ID.Accept(nil, depthParams())
}

func (t *serving) handleEvent(cmid.Event) error { return nil }

func (t *serving) handleMessage(b buffer) error {
	switch t.at {
	case theSource:
		return t.postRead(b)
	case theSink:
		return t.postWrite(b)
	}
	return errors.New("a message before the read is done: this is not ping")
}

func (t *serving) postRead(b buffer) error {
	if b.size < 1 || int64(b.size) > int64(len(t.data.Bytes)) {
		return fmt.Errorf("the client offers %d bytes, this server takes 1 to %d: see -S", b.size, len(t.data.Bytes))
	}
	t.n, t.at = b.size, theRead
	t.c.startStep(fmt.Sprintf("reading %d bytes", t.n))
	return t.c.QP.PostSend(&verbs.SendWR{
		Op: verbs.Read, Flags: verbs.Signaled, SGL: t.dataSGL(), RemoteAddr: b.addr, RKey: b.rkey,
	})
}

func (t *serving) postWrite(b buffer) error {
	if b.size < t.n {
		return fmt.Errorf("the client wants %d bytes back in %d", t.n, b.size)
	}
	t.at = theSource
	t.c.startStep("the client's next source")
	err := t.c.QP.PostSend(&verbs.SendWR{
		Op: verbs.Write, Flags: verbs.Signaled, SGL: t.dataSGL(), RemoteAddr: b.addr, RKey: b.rkey,
	})
	if err != nil {
		return err
	}
	return t.goAhead() // it arrives after the Write is in place
}

func (t *serving) dataSGL() []verbs.SGE { return []verbs.SGE{{MR: t.data, Length: t.n}} }

func (t *serving) goAhead() error { return t.c.sendBuffer(buffer{}) }

func (t *serving) handleDone(op verbs.Opcode) error {
	if op != verbs.Read {
		return nil
	}
	if t.s.verbose {
		fmt.Fprintf(t.s.stdout, "server ping data: %s\n", printedText(t.data.Bytes[:t.n]))
	}
	t.at = theSink
	t.c.startStep("the client's sink")
	return t.goAhead()
}

func (t *serving) mayDisconnect() bool { return t.at == theSource }
