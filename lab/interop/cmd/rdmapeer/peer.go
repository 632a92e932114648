package main

import (
	"errors"
	"fmt"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/endpoint"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// peer is an endpoint that receives messages of one size.
type peer struct {
	endpoint.Endpoint
	seen map[states.Kind]cmid.Event // the last event of each kind

	out   *verbs.MR // the content of every sent message
	front uint32    // length of the routing header before a received message, or 0
	size  uint32
	ah    verbs.AH // the destination of datagrams

	written func(wc *verbs.WC) error // checks the bytes written with immediate data

	received, sent int
	first          verbs.WC // the first message's completion
	disconnecting  bool
}

// setUpQueuePair makes the queue pair and posts a receive for each message. Messages have size
// bytes.
func (e *peer) setUpQueuePair(messages, size int) (err error) {
	e.size = uint32(size)
	if e.ID.Datagram() {
		e.front = verbs.GRHLen
	}
	if err := e.Create(messages, messages, func() {}); err != nil {
		return err
	}
	if e.out, err = e.Alloc(size, 0); err != nil {
		return err
	}
	for i := range e.out.Bytes {
		e.out.Bytes[i] = byte(i)
	}
	return e.Receive(messages, int(e.front+e.size))
}

// postMessages posts messages. wr has their destination. The zero value is the peer of the
// connection.
func (e *peer) postMessages(messages int, wr verbs.SendWR) error {
	wr.Flags = verbs.Signaled
	wr.SGL = []verbs.SGE{{MR: e.out, Length: e.size}}
	for range messages {
		if err := e.QP.PostSend(&wr); err != nil {
			return err
		}
	}
	return nil
}

// pollCompletions handles the available completions.
func (e *peer) pollCompletions() (err error) {
	e.Poll(func(wc *verbs.WC) bool {
		err = e.handleCompletion(wc)
		return err == nil
	})
	return err
}

func (e *peer) handleCompletion(wc *verbs.WC) error {
	switch {
	case wc.Status == verbs.StatusFlushed: // the event of the end has the reason
		return nil
	case wc.Status != verbs.StatusSuccess:
		return fmt.Errorf("%v: %v", wc.Op, wc.Status)
	case wc.Op == verbs.RecvWrite && e.written != nil:
		e.received++
		return e.written(wc)
	case wc.Op != verbs.Recv:
		e.sent++
		return nil
	case wc.Bytes != e.front+e.size:
		return fmt.Errorf("message %d has %d bytes, want %d", e.received, wc.Bytes-e.front, e.size)
	}
	if e.received == 0 {
		e.first = *wc
	}
	e.received++
	return nil
}

// handleEvent handles an event of the identifier that does not report a failure.
func (e *peer) handleEvent(ev cmid.Event) error {
	e.seen[ev.Kind()] = ev
	switch ev := ev.(type) {
	case *cmid.DeviceRemoval:
		return errors.New("the device has been removed")
	case *cmid.Disconnected:
		if ev.Err != nil {
			return ev.Err
		}
		return e.disconnectOnce() // on InfiniBand the peer waits for this
	}
	return nil
}

// disconnectOnce disconnects, or answers the peer's disconnect. Only the first call has an effect.
func (e *peer) disconnectOnce() error {
	if e.disconnecting {
		return nil
	}
	e.disconnecting = true
	return e.ID.Disconnect()
}

// close frees the peer's resources.
func (e *peer) close() error {
	err := e.Close()
	if e.ah != nil {
		err = errors.Join(err, e.ah.Close())
	}
	return err
}
