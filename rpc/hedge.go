package rpc

import (
	"context"
	"time"
)

// attempt is a call on its way to one server.
type attempt struct {
	cl *clientCall
	l  *link
}

// hedges are the attempts of one call that are under way, the first one first.
type hedges struct {
	attempts [1 + mostHedges]attempt // those without cl are not under way
	n        int                     // attempts that were begun
	unsure   bool                    // an attempt that is not under way may have been executed
}

// mostHedges is how many attempts may join the first one.
const mostHedges = 2

// callHedged makes a call. Whenever it is not answered in time, another server is called as well.
// The first answer counts; an error that may be the server's counts if no other attempt is under
// way. server is that of the result.
func (c *Client) callHedged(ctx context.Context, m *method, body []byte, not avoided, o callOptions) (cl *clientCall, server *endpoint, err error) {
	var h hedges
	first := attempt{cl: c.newCall(m, o)}
	if first.l, err = c.startCall(ctx, ctx, first.cl, body, not); err != nil {
		c.releaseCall(first.cl)
		return nil, nil, err
	}
	h.addAttempt(first)
	late := time.NewTimer(c.pool.Hedge)
	defer late.Stop()
	for {
		finished := -1
		isLate := false
		select {
		case <-h.doneChan(0):
			finished = 0
		case <-h.doneChan(1):
			finished = 1
		case <-h.doneChan(2):
			finished = 2
		case <-late.C:
			isLate = true
		case <-ctx.Done():
		case <-c.rt.Stalled():
		}
		c.rt.Scheduler().Resume()
		switch {
		case isLate:
			c.beginAnother(ctx, m, body, &h, o)
			late.Reset(c.pool.Hedge)
		case finished < 0 && ctx.Err() == nil && onLoop(m, FateUnknown) == nil:
			// another goroutine's loop has stalled
		case finished < 0:
			cl, server, err = c.waitFor(ctx, c.keepOne(&h))
			return cl, server, inAll(err, h.unsure)
		default:
			a := h.takeAttempt(finished)
			if a.cl.err != nil && mayBeServers(a.cl.err) && h.activeAttempts() > 0 {
				h.unsure = h.unsure || !a.cl.err.Fate.NotExecuted()
				c.releaseCall(a.cl)
				continue
			}
			c.giveUp(&h)
			cl, server, err = c.endAttempt(a, a.cl.errOrNil())
			return cl, server, inAll(err, h.unsure)
		}
	}
}

// mayBeServers reports whether err may be a failure of the server, so that another one may answer.
func mayBeServers(err *Error) bool { return err.Code == CodeInternal || isRetryable(true, err) }

// beginAnother begins another attempt, if there is another server that takes it immediately, and
// the budget allows it.
func (c *Client) beginAnother(ctx context.Context, m *method, body []byte, h *hedges, o callOptions) {
	if h.n == len(h.attempts) || ctx.Err() != nil {
		return
	}
	var not avoided
	for i, a := range h.attempts[:h.n] {
		if a.cl != nil {
			not[i] = a.l.server
		}
	}
	l := c.anotherLink(ctx, not)
	if l == nil || !c.budget.takeToHedge() {
		return
	}
	a := attempt{cl: c.newCall(m, o), l: l}
	a.cl.most = c.methodSettings(m).MaxResponse
	metadata, err := prepareCall(ctx, a.cl)
	if err == nil {
		err = l.queueRequest(a.cl, metadata, body)
	}
	if err != nil {
		c.budget.left.Add(budgetCost)
		c.releaseCall(a.cl)
		return
	}
	h.addAttempt(a)
	c.ledger.countsOf(m).repeated.Add(1)
}

// anotherLink returns the connection of a server that is not avoided, rather of one that is not
// ejected. nil: there is none.
func (c *Client) anotherLink(ctx context.Context, not avoided) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ejected := range []bool{false, true} {
		ch := choice{c: c, now: time.Now(), not: not, ejected: ejected}
		if e := ch.chooseEndpoint(ctx); e != nil {
			return e.link
		}
	}
	return nil
}

// addAttempt adds an attempt that is under way.
func (h *hedges) addAttempt(a attempt) {
	h.attempts[h.n] = a
	h.n++
}

// doneChan returns the channel that has a token when an attempt is finished; nil: it is not under
// way.
func (h *hedges) doneChan(i int) chan struct{} {
	if h.attempts[i].cl == nil {
		return nil
	}
	return h.attempts[i].cl.done
}

// takeAttempt returns an attempt, which is no longer among those under way.
func (h *hedges) takeAttempt(i int) attempt {
	a := h.attempts[i]
	h.attempts[i] = attempt{}
	return a
}

// activeAttempts returns how many attempts are under way.
func (h *hedges) activeAttempts() (n int) {
	for i := range h.attempts {
		if h.attempts[i].cl != nil {
			n++
		}
	}
	return n
}

// keepOne gives up all attempts but one, which it returns.
func (c *Client) keepOne(h *hedges) attempt {
	for i := range h.attempts {
		if h.attempts[i].cl != nil {
			a := h.takeAttempt(i)
			c.giveUp(h)
			return a
		}
	}
	return attempt{} // not reached: one is under way
}

// giveUp cancels the attempts that are under way, and notes whether one may have been executed.
func (c *Client) giveUp(h *hedges) {
	for i := range h.attempts {
		if h.attempts[i].cl == nil {
			continue
		}
		a := h.takeAttempt(i)
		fate, ok := a.l.cancelCall(a.cl, &Error{Code: CodeCanceled})
		if !ok {
			<-a.cl.done
			c.rt.Scheduler().Resume()
			if fate = FateAnswered; a.cl.err != nil {
				fate = a.cl.err.Fate
			}
		}
		h.unsure = h.unsure || !fate.NotExecuted()
		c.releaseCall(a.cl)
	}
}

// waitFor waits for an attempt.
func (c *Client) waitFor(ctx context.Context, a attempt) (*clientCall, *endpoint, error) {
	return c.endAttempt(a, c.awaitCall(ctx, a.l, a.cl))
}

// endAttempt returns the call of an attempt that has ended with err, and sets the targets of its
// options.
func (c *Client) endAttempt(a attempt, err error) (*clientCall, *endpoint, error) {
	if a.cl.meta != nil {
		a.l.out.mu.Lock()
		a.cl.opts.deliverMeta(a.cl.meta)
		a.l.out.mu.Unlock()
	}
	if err != nil {
		c.releaseCall(a.cl)
		return nil, a.l.server, err
	}
	return a.cl, a.l.server, nil
}
