package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// newCall takes a call from the client's pool. Every client has its own pool, because a call
// contains a channel, which must not leave its synctest bubble.
func (c *Client) newCall(m *method, o callOptions) *clientCall {
	cl, ok := c.calls.Get().(*clientCall)
	if !ok {
		cl = &clientCall{done: make(chan struct{}, 1)}
	}
	cl.m = m
	if cl.opts = o; o.wantsMeta() {
		cl.meta = new(answerMeta)
	}
	return cl
}

// releaseCall returns a call to the pool. The caller holds the last reference.
func (c *Client) releaseCall(cl *clientCall) {
	if cap(cl.reply) > keepBuffer {
		cl.reply = nil
	}
	cl.parts.releaseAll()
	cl.body.releaseMessage() // of an answer that was no longer wanted
	cl.err, cl.next, cl.meta, cl.body.b = nil, nil, nil, nil
	c.calls.Put(cl)
}

// Call calls a method and waits for its answer, for ctx's end, or the connection's. The server
// gets the time that is left until ctx's deadline. When ctx ends, the handler's context is
// cancelled. q is the caller's again when Call returns. Every error is an *Error, unless an
// interceptor returns another one.
func Call[Q, R any](ctx context.Context, c *Client, m Method[Q, R], q *Q, opts ...CallOption) (*R, error) {
	o := optionsOf(opts)
	if len(c.cfg.Interceptors) > 0 {
		return callWithin(ctx, c, m, q, o)
	}
	r := new(R)
	if err := c.callMessage(ctx, m.m, q, r, o); err != nil {
		return nil, err
	}
	return r, nil
}

// callWithin does Call within the interceptors.
func callWithin[Q, R any](ctx context.Context, c *Client, m Method[Q, R], q *Q, o callOptions) (*R, error) {
	p := c.newPassage(m.m, q)
	p.do = func(ctx context.Context, call *Info) error {
		scratch, body, err := c.packWithin(p, call.Request)
		if err != nil {
			return err
		}
		r := new(R)
		if err = c.callEncoded(ctx, m.m, scratch, body, r, o); err == nil {
			call.Reply = r
		}
		return err
	}
	r, err := answerOf[*R](ctx, p)
	if err == nil && r == nil {
		err = p.unansweredError()
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// CallRaw is Call of a method that carries bytes: the answer is appended to reply.
func CallRaw(ctx context.Context, c *Client, m RawMethod, q, reply []byte) ([]byte, error) {
	if len(c.cfg.Interceptors) == 0 {
		return c.callRaw(ctx, m.m, q, reply)
	}
	p := c.newPassage(m.m, q)
	p.do = func(ctx context.Context, call *Info) (err error) {
		call.Reply, err = c.callRawWithin(ctx, p, call.Request.([]byte))
		return err
	}
	r, err := answerOf[[]byte](ctx, p)
	if err != nil {
		return reply, err
	}
	return append(reply, r...), nil
}

// callRawWithin does callRaw within the interceptors. One of them may return before it has: so it
// uses neither the caller's request, but a copy, nor the caller's memory for the answer.
func (c *Client) callRawWithin(ctx context.Context, p *passage, q []byte) ([]byte, error) {
	memory := getBufferFor(len(q))
	body := memory.b
	err := p.whileAwaited(func() error {
		body = append(body, q...)
		return nil
	})
	if err != nil {
		memory.put(0)
		return nil, err
	}
	cl, err := c.callWithRetries(ctx, p.m, body, callOptions{})
	memory.put(len(body))
	if err != nil {
		return nil, err
	}
	cl.ownReply()
	reply := cl.reply
	cl.reply = nil
	c.releaseCall(cl)
	return reply, nil
}

// newPassage returns the way of a call of m through the interceptors.
func (c *Client) newPassage(m *method, q any) *passage {
	info := &Info{Method: m.name, Stream: m.stream, Request: q}
	if c.pool == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if l := c.chooseLocked(context.Background(), avoided{}); l != nil {
			info.Peer, info.Identity, info.TLS = l.peer, l.identity, l.tls
		}
	}
	return &passage{is: c.cfg.Interceptors, m: m, info: info}
}

// packWithin does packRequest within the interceptors: the request is the caller's again when they
// have returned.
func (c *Client) packWithin(p *passage, q any) (memory *buffer, body []byte, err error) {
	err = p.whileAwaited(func() (err error) {
		memory, body, err = c.packRequest(p.m, q)
		return err
	})
	return memory, body, err
}

// packRequest encodes a request of m. body lies in memory, or in another allocation if that was too
// small. The caller puts memory back after its last use of body.
func (c *Client) packRequest(m *method, q any) (memory *buffer, body []byte, err error) {
	scratch := getBuffer()
	if body, err = m.req.tryEncode(scratch.b, q); err != nil {
		scratch.put(0)
		c.ledger.countsOf(m).refused[forMessage].Add(1)
		return nil, nil, badMessage(m, "request", err, FateNotSent)
	}
	return scratch, body, nil
}

// decodeAnswer decodes an answer, and counts one that cannot be.
func (l *ledger) decodeAnswer(m *method, b []byte, r any) error {
	if err := m.rep.tryDecode(b, r); err != nil {
		l.countsOf(m).undecoded.Add(1)
		return badMessage(m, "reply", err, FateAnswered)
	}
	return nil
}

// callMessage encodes, calls and decodes.
func (c *Client) callMessage(ctx context.Context, m *method, q, r any, o callOptions) error {
	scratch, body, err := c.packRequest(m, q)
	if err != nil {
		return err
	}
	return c.callEncoded(ctx, m, scratch, body, r, o)
}

// callEncoded calls with body, which lies in scratch, and decodes the answer.
func (c *Client) callEncoded(ctx context.Context, m *method, scratch *buffer, body []byte, r any, o callOptions) error {
	cl, err := c.callWithRetries(ctx, m, body, o)
	scratch.put(len(body))
	if err != nil {
		return err
	}
	cl.ownReply()
	err = c.ledger.decodeAnswer(m, cl.reply, r)
	c.releaseCall(cl)
	return err
}

func (c *Client) callRaw(ctx context.Context, m *method, q, reply []byte) ([]byte, error) {
	cl, err := c.callWithRetries(ctx, m, q, callOptions{})
	if err != nil {
		return reply, err
	}
	reply = cl.appendTo(reply)
	c.releaseCall(cl)
	return reply, nil
}

// callWithRetries makes a call, with its retries, and returns it with its answer.
func (c *Client) callWithRetries(ctx context.Context, m *method, body []byte, o callOptions) (*clientCall, error) {
	of := c.methodSettings(m)
	ctx, cancel := c.withTimeout(ctx, of.Timeout)
	defer cancel()
	c.budget.addShare()
	o.deliverMeta(&answerMeta{})
	unsure := false // whether an earlier attempt may have been executed
	var last avoided
	for attempt, moves := 1, 0; ; {
		cl, server, err := c.callOnce(ctx, m, body, last, o)
		switch {
		case err == nil:
			return cl, nil
		case of.WaitForReady && isUnsent(err):
			// the connection ended before the request was sent: the call waits for another
			// connection
		case c.pool != nil && server != nil && moves < mostMoves && mayTryElsewhere(err):
			moves++
		case !isRetryable(of.Idempotent, err) || !of.Retry.mayRepeat(attempt) || !c.budget.takeRetry() || !of.Retry.waitBackoff(ctx, c.rt.Scheduler(), attempt):
			return nil, c.withServer(inAll(err, unsure), server, attempt+moves)
		default:
			attempt++
			c.ledger.countsOf(m).repeated.Add(1)
			e, _ := errors.AsType[*Error](err) // isRetryable has checked it
			unsure = unsure || !e.Fate.NotExecuted()
		}
		last = avoided{server}
	}
}

// withServer adds to the error of a call which server it was made at, and how often. server is nil
// if there was no connection.
func (c *Client) withServer(err error, server *endpoint, attempts int) error {
	e, ok := err.(*Error) //nolint:errorlint // one inside of a cause is another call's
	if !ok {
		return err
	}
	e.Attempts, e.Server = attempts, c.addr
	if server != nil {
		e.Server = server.addr
	}
	return err
}

// mostMoves is how often a call moves on to another server because one does not take it.
const mostMoves = 5

// mayTryElsewhere reports whether err means that a server did not take a call, and that another
// may: the connection has ended or has no place for it, or the server drains.
func mayTryElsewhere(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok || !e.Fate.NotExecuted() || errors.Is(e.Err, rdma.ErrShutdown) {
		return false
	}
	return e.Code == CodeDraining || e.Fate == FateNotSent && (e.Code == CodeUnavailable || e.Code == CodeOverloaded)
}

// inAll returns the last attempt's error with the fate of all of them. unsure: another one may have
// been executed.
func inAll(err error, unsure bool) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || !unsure || !e.Fate.NotExecuted() {
		return err
	}
	all := *e // an interceptor may still have e
	all.Fate = FateUnknown
	if any(err) != any(e) { // it is wrapped
		all.Err = err
	}
	return &all
}

// withTimeout returns ctx with a deadline after timeout, if it has none.
func (c *Client) withTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has || timeout <= 0 || ctx.Value(unlimited{c}) != nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

// isUnsent reports whether err means that a request was not sent because its connection ended or
// drained, or because there was none. Such a call can wait for another connection, unless the
// runtime was shut down.
func isUnsent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Fate != FateNotSent || errors.Is(e.Err, rdma.ErrShutdown) {
		return false
	}
	return e.Code == CodeUnavailable || e.Code == CodeDraining
}

// callOnce makes a call without retries, if possible at another server than not. server is the one
// that it was made at; nil: at none.
func (c *Client) callOnce(ctx context.Context, m *method, body []byte, not avoided, o callOptions) (cl *clientCall, server *endpoint, err error) {
	if c.pool != nil && c.pool.Hedge > 0 && c.methodSettings(m).Idempotent {
		return c.callHedged(ctx, m, body, not, o)
	}
	a := attempt{cl: c.newCall(m, o)}
	if a.l, err = c.startCall(ctx, ctx, a.cl, body, not); err != nil {
		c.releaseCall(a.cl)
		return nil, nil, err
	}
	return c.waitFor(ctx, a)
}

// awaitCall waits until cl is finished, or gives it up: when ctx ends, and on the goroutine of a
// loop, which must not wait.
func (c *Client) awaitCall(ctx context.Context, l *link, cl *clientCall) error {
	var why *Error
	for why == nil {
		select {
		case <-cl.done:
			c.rt.Scheduler().Resume()
			return cl.errOrNil()
		case <-ctx.Done():
			c.rt.Scheduler().Resume()
			why = contextError(ctx, cl.m, FateUnknown)
		case <-c.rt.Stalled():
			c.rt.Scheduler().Resume()
			why = onLoop(cl.m, FateUnknown)
		}
	}
	if f, ok := l.cancelCall(cl, why); ok {
		why.Fate = f
		return why
	}
	<-cl.done
	c.rt.Scheduler().Resume()
	return cl.errOrNil()
}

// startCall queues a request on a connection, if possible to another server than not. If there is
// none, and WaitForReady is set, it waits for one until ready ends.
func (c *Client) startCall(ctx, ready context.Context, cl *clientCall, body []byte, not avoided) (*link, error) {
	of := c.methodSettings(cl.m)
	if most := of.MaxRequest; most > 0 && len(body) > most {
		return nil, c.countRefused(cl.m, beyondMaxRequest(cl.m, len(body), most, FateNotSent))
	}
	cl.most = of.MaxResponse
	for moves := 0; ; {
		l, err := c.currentLink(ready, cl.m, of.WaitForReady, not)
		if err != nil {
			return nil, c.countRefused(cl.m, err)
		}
		metadata, err := prepareCall(ctx, cl)
		if err != nil {
			return nil, c.countRefused(cl.m, err)
		}
		err = l.queueRequest(cl, metadata, body)
		switch {
		case err == nil:
			return l, nil
		case moves < mostMoves && (c.pool != nil && mayTryElsewhere(err) || isUnsent(err)):
			moves++ // there may be another connection, also to the same server
			not = avoided{l.server}
		case !of.WaitForReady || !isUnsent(err):
			return nil, c.countRefused(cl.m, err)
		}
		// The connection has ended since. The next call of currentLink waits for another one.
	}
}

// beyondMaxRequest returns the error of a request of n bytes for a method that has at most most.
func beyondMaxRequest(m *method, n, most int, f Fate) *Error {
	return &Error{
		Code: CodeTooLarge, Method: m.name, Fate: f,
		Message: fmt.Sprintf("the request has %d bytes, the method takes %d (MaxRequest of the MethodConfig or ServiceConfig, or 64 KiB of an OnLoop handler)", n, most),
	}
}

// beyondMaxResponse returns the error of an answer or item for a method that has at most most.
func beyondMaxResponse(m *method, most int, f Fate) *Error {
	what := "the answer"
	if m.items {
		what = "an item"
	}
	return &Error{
		Code: CodeTooLarge, Method: m.name, Fate: f,
		Message: fmt.Sprintf("%s has more than %d bytes (MaxResponse of the MethodConfig or ServiceConfig)", what, most),
	}
}

// prepareCall takes the call's deadline and metadata from ctx.
func prepareCall(ctx context.Context, cl *clientCall) (metadata []byte, err error) {
	if ctx.Err() != nil {
		return nil, contextError(ctx, cl.m, FateNotSent)
	}
	cl.deadline, _ = ctx.Deadline()
	if metadata, err = outgoingMetadata(ctx); err != nil {
		return nil, withMethod(err, cl.m)
	}
	return metadata, nil
}
