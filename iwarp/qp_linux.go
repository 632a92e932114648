package iwarp

import (
	"cmp"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/iwarp/core"
	"github.com/rdmactor/rdmactor/verbs"
)

// queuePair is a verbs.QP: the application's side of a conn. If it has a shared receive queue, it
// is the core.RecvSource of its conn.
type queuePair struct {
	dev            *device
	conn           *conn // nil once destroyed
	sendCQ, recvCQ *completionQueue
	srq            *sharedQueue
	pd             *domain
	// of its QPInitAttr
	context                      any
	maxSendWR, maxRecvWR, maxSGE int

	early    []earlyWC // completions that are held back until open
	num      uint32
	withheld verbs.Access // access removed by SetAccess
	open     bool         // Established was delivered, so completions go to their queues
	paused   bool         // by Pause
}

type earlyWC struct {
	cq        *completionQueue
	wc        verbs.WC
	solicited bool
}

func newQP(d *device, c *conn, attr verbs.QPInitAttr) (*queuePair, error) {
	attr.MaxSGE = cmp.Or(attr.MaxSGE, 1)
	q := &queuePair{dev: d, conn: c, context: attr.Context, maxSendWR: attr.MaxSendWR, maxRecvWR: attr.MaxRecvWR, maxSGE: attr.MaxSGE}
	if err := q.takeQueues(&attr); err != nil {
		return nil, err
	}
	if c.phase == phIdle {
		if err := c.core.Init(core.Config{Pool: &d.in.pool, MessageTimeout: d.in.cfg.MessageTimeout}, c); err != nil {
			return nil, err
		}
	}
	c.core.SetQueues(q.coreQueues())
	for {
		// InfiniBand reserves 0 and 1
		if d.lastQP = (d.lastQP + 1) & 0xffffff; d.lastQP > 1 && d.qps[d.lastQP] == nil {
			break
		}
	}
	q.num = d.lastQP
	d.qps[q.num] = q
	q.pd.users++
	q.sendCQ.users++
	q.recvCQ.users++
	if q.srq != nil {
		q.srq.users++
	}
	c.qp, c.silent = q, false
	return q, nil
}

// takeQueues validates the attributes and gets the queues from them.
func (q *queuePair) takeQueues(a *verbs.QPInitAttr) error {
	var okSend, okRecv bool
	q.sendCQ, okSend = a.SendCQ.(*completionQueue)
	q.recvCQ, okRecv = a.RecvCQ.(*completionQueue)
	switch {
	case !okSend || !okRecv || q.sendCQ.dev != q.dev || q.recvCQ.dev != q.dev || q.sendCQ.gone || q.recvCQ.gone:
		return fmt.Errorf("iwarp: queue pair without completion queues of %s: %w", q.dev.Name(), unix.EINVAL)
	case a.MaxSendWR < 0 || a.MaxSendWR > maxQPWR || a.MaxRecvWR < 0 || a.MaxRecvWR > maxQPWR:
		return fmt.Errorf("iwarp: queues of %d and %d, more than %d: %w", a.MaxSendWR, a.MaxRecvWR, maxQPWR, unix.EINVAL)
	case a.MaxSGE < 0 || a.MaxSGE > core.MaxSGE:
		return fmt.Errorf("iwarp: %d scatter/gather elements, more than %d: %w", a.MaxSGE, core.MaxSGE, unix.EINVAL)
	case len(q.dev.qps) >= q.dev.in.cfg.MaxConns:
		return fmt.Errorf("iwarp: the device has its %d queue pairs (MaxConns): %w", len(q.dev.qps), unix.ENOMEM)
	}
	if a.SRQ != nil {
		s, ok := a.SRQ.(*sharedQueue)
		if !ok || s.dev != q.dev || s.gone {
			return fmt.Errorf("iwarp: not a shared receive queue of %s: %w", q.dev.Name(), unix.EINVAL)
		}
		q.srq = s
	}
	var err error
	if q.pd, err = q.dev.domainOf(a.PD); err == nil && q.srq != nil && q.srq.pd != q.pd && q.srq.pd != q.dev.pd {
		return fmt.Errorf("iwarp: shared receive queue of another protection domain than the queue pair's: %w", unix.EINVAL)
	}
	return err
}

// coreQueues returns the core's part of the attributes.
func (q *queuePair) coreQueues() core.Queues {
	out := core.Queues{SendWRs: q.maxSendWR, RecvWRs: q.maxRecvWR, PD: q.pd, Regions: &q.dev.regions}
	if q.srq != nil {
		out.SRQ = q
	}
	return out
}

// Num returns the queue pair number.
func (q *queuePair) Num() uint32 { return q.num }

// Context returns QPInitAttr.Context.
func (q *queuePair) Context() any { return q.context }

// PostSend queues wr; it is written at the end of the turn.
func (q *queuePair) PostSend(wr *verbs.SendWR) error {
	c := q.conn
	switch {
	case c == nil:
		return fmt.Errorf("iwarp: queue pair destroyed: %w", verbs.ErrQPState)
	case len(wr.SGL) > q.maxSGE:
		return fmt.Errorf("iwarp: %d scatter/gather elements, more than %d: %w", len(wr.SGL), q.maxSGE, unix.EINVAL)
	}
	if err := c.core.PostSend(wr); err != nil {
		return err
	}
	c.in.scheduleOutput(c)
	return nil
}

// PostRecv queues wr.
func (q *queuePair) PostRecv(wr verbs.RecvWR) error {
	if q.conn == nil {
		return fmt.Errorf("iwarp: queue pair destroyed: %w", unix.EINVAL)
	}
	return q.conn.core.PostRecv(wr)
}

// SetAccess changes the peer's rights.
func (q *queuePair) SetAccess(access verbs.Access) error {
	if q.conn == nil {
		return fmt.Errorf("iwarp: queue pair destroyed: %w", unix.EINVAL)
	}
	q.withheld = (verbs.RemoteWrite | verbs.RemoteRead) &^ access
	q.conn.core.Withhold(q.withheld)
	return nil
}

// Came returns the number of bytes that were read from the socket.
func (q *queuePair) Came() uint64 {
	if q.conn == nil {
		return 0
	}
	return q.conn.came
}

// Watched makes TCP wait even if the peer's window stays closed. With TCP_USER_TIMEOUT it would
// give up.
func (q *queuePair) Watched() {
	c := q.conn
	switch {
	case c == nil || c.fd < 0:
	case c.unguarded:
		c.unguarded = false // it never gets the option
	default:
		// the socket is open, so this cannot fail
		_ = c.in.sys.SetOption(c.fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 0)
	}
}

// Went returns the number of bytes that were written to the socket, minus those that the peer has
// not acknowledged.
func (q *queuePair) Went() uint64 {
	c := q.conn
	if c == nil || c.fd < 0 {
		return 0
	}
	return c.went - uint64(c.in.unackedBytes(c.fd))
}

// Destroy flushes and frees the queue pair. Its connection ends, but a request that was not
// answered remains.
func (q *queuePair) Destroy() error {
	c := q.conn
	if c == nil {
		return nil
	}
	now := c.in.loop.Now()
	if c.phase == phIdle || c.id.child && !c.id.answered {
		var last core.Conn
		if err := last.Init(core.Config{}, flusher{c}); err != nil {
			return err
		}
		last.TakeReceives(&c.core)
		last.Abort(now)
	} else {
		c.abort(now)
	}
	q.detachConn()
	return nil
}

// flusher implements the upcalls of a core that is made only to flush receives.
type flusher struct{ *conn }

func (flusher) Closed(error) {}

// detachConn frees the queue pair after its flush.
func (q *queuePair) detachConn() {
	q.releaseEarly()
	q.conn.waitOver()
	q.conn.qp = nil
	q.conn = nil
	delete(q.dev.qps, q.num)
	q.pd.users--
	q.sendCQ.users--
	q.recvCQ.users--
	if q.srq != nil {
		q.srq.users--
	}
}

// addCompletion passes a completion to its queue, or keeps it until Established was delivered to
// the application.
func (q *queuePair) addCompletion(wc verbs.WC, solicited bool) {
	cq := q.sendCQ
	if wc.Op == verbs.Recv {
		cq = q.recvCQ
	}
	wc.QP = q
	if !q.open {
		q.early = append(q.early, earlyWC{cq, wc, solicited})
		return
	}
	cq.push(wc, solicited)
}

// releaseEarly passes the held completions to their queues, and later ones directly.
func (q *queuePair) releaseEarly() {
	q.open = true
	for _, h := range q.early {
		h.cq.push(h.wc, h.solicited)
	}
	q.early = nil
}
