package timing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/endpoint"
	"github.com/rdmactor/rdmactor/verbs"
)

// serveEvents handles events until over returns true. It returns cli.ErrInterrupted if the channel
// was stopped. It calls idle if no event came within the time limit.
func serveEvents(ch *endpoint.Channel, timeout time.Duration, handle func(*cmid.ID, cmid.Event), over func() bool, idle func()) error {
	for {
		err := ch.Drain(func(id *cmid.ID, ev cmid.Event) error {
			handle(id, ev)
			return nil
		})
		if err != nil || over() {
			return err
		}
		switch why, err := ch.Wait(timeout); {
		case err != nil:
			return err
		case why == endpoint.Late:
			idle()
		case why == endpoint.Stopped:
			return cli.ErrInterrupted
		}
	}
}

// qpAttr returns the attributes of the smallest queue pair, because nothing is sent.
func qpAttr(cq verbs.CQ) verbs.QPInitAttr {
	return verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: 1, MaxSGE: 1}
}

// queues are the completion queues for a channel's queue pairs, one for each device.
type queues map[verbs.Device]verbs.CQ

func (q queues) createQP(id *cmid.ID) error {
	dev := id.Device()
	if dev == nil {
		return errors.New("the identifier has no device")
	}
	if q[dev] == nil {
		const entries = 16
		cq, err := dev.CreateCQ(entries, func() {})
		if err != nil {
			return err
		}
		q[dev] = cq
	}
	_, err := id.CreateQP(qpAttr(q[dev]))
	return err
}

func (q queues) close() (err error) {
	for _, cq := range q {
		err = errors.Join(err, cq.Close())
	}
	return err
}

// plainClient makes connections with the plain calls.
type plainClient struct {
	ch      *endpoint.Channel
	queues  queues
	timeout time.Duration
}

func openPlainClient(c Config) (Client, error) {
	ch, err := endpoint.Open(c.Driver)
	if err != nil {
		return nil, err
	}
	return &plainClient{ch, make(queues), c.Timeout}, nil
}

func (cl *plainClient) Close() (err error) {
	if n := cl.ch.Len(); n > 0 {
		err = fmt.Errorf("%d identifiers are left", n)
	}
	return errors.Join(err, cl.ch.Close(), cl.queues.close())
}

func (cl *plainClient) Run(ctx context.Context, p Plan) (Run, error) {
	defer context.AfterFunc(ctx, cl.ch.Stop)()
	l := &plainLevel{plainClient: cl, ids: make([]*cmid.ID, p.IDs)}
	l.b = newBench(p, l, cl.timeout, true, func() {})
	l.b.advanceSteps()
	if err := serveEvents(cl.ch, cl.timeout, l.handleEvent, func() bool { return l.b.over }, l.b.failPending); err != nil {
		l.destroyIDs()
		return Run{}, err
	}
	return l.b.result(), nil
}

// plainLevel is the level of plain calls. It has the identifiers of one run.
type plainLevel struct {
	*plainClient
	b   *bench
	ids []*cmid.ID
}

// destroyIDs destroys the remaining identifiers of an unfinished run.
func (l *plainLevel) destroyIDs() {
	for i, id := range l.ids {
		if id != nil && !l.b.ids[i].closed {
			id.Do(&cmid.DestroyID{}, nil)
		}
	}
}

func (l *plainLevel) handleEvent(id *cmid.ID, ev cmid.Event) { l.b.handleEvent(id.Context.(int), ev) }

func (l *plainLevel) createID(i int) {
	id, err := l.ch.CreateID(cmid.PortSpaceTCP)
	if err == nil {
		l.ids[i], id.Context = id, i
	}
	l.b.handleCreated(i, err)
}

func (l *plainLevel) createQP(i int) { l.b.handleCreated(i, l.queues.createQP(l.ids[i])) }

func (l *plainLevel) issueCommand(i int, cmd cmid.Command) {
	if l.ids[i] == nil { // its creation has failed
		l.b.handleEvent(i, &cmid.Closed{})
		return
	}
	var answer cmid.Event
	// if Do does not answer, the channel delivers the event
	if l.ids[i].Do(cmd, func(ev cmid.Event) { answer = ev }) == nil {
		l.b.handleEvent(i, answer)
	}
}

func (l *plainLevel) endsItself() bool { return false }
