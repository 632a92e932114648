package rpc

import (
	"context"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/internal/optional"
)

// Reply is the answer of a call that Go has made, as a message to the actor that has called.
type Reply[R any] struct {
	Call  *Pending // the result of Go
	Value *R       // nil with an error
	Err   error    // an *Error, as Call returns it
}

// Pending is a call that Go has made. Two calls have different ones.
type Pending struct {
	call   clientCall // not used again: Cancel may come late
	link   *link
	sys    *actor.ActorSystem
	to     *actor.PID
	cancel context.CancelFunc // cancels Timeout's context; on a goroutine, the call's
	reply  func(b []byte, err error) any

	mu   sync.Mutex
	stop func() bool // stops watching the context
	over bool
}

// GoConfig is how Go makes a call.
type GoConfig struct {
	// Timeout is how long the call may take, instead of the method's. 0: the method's, if
	// Context has no deadline. Negative: the call has no deadline but Context's.
	Timeout time.Duration
	// Context ends the call when it ends, and its deadline and metadata are the call's. nil: none.
	Context context.Context
}

// unlimited is the key of a context's value that switches the client's Timeout off. A call
// that an interceptor makes with another client keeps that client's.
type unlimited struct{ client *Client }

// Go calls a method for an actor, and does not block. The actor always gets exactly one answer, a
// *Reply[R]. If the Client has interceptors, retries or WaitForReady, the call is made on a
// goroutine, and q must not be changed until the answer arrives. Otherwise q is the caller's again
// when Go returns. The answer is decoded on the client's loop, or on a goroutine if it has more
// than 64 KiB.
func Go[Q, R any](ctx actor.Context, c *Client, m Method[Q, R], q *Q, configs ...GoConfig) *Pending {
	cfg := optional.Value(configs)
	of, under := c.methodSettings(m.m), cfg.Context
	if under == nil {
		under = context.Background()
	}
	if _, has := under.Deadline(); cfg.Timeout == 0 && !has {
		cfg.Timeout = of.Timeout
	}
	if cfg.Timeout < 0 {
		under = context.WithValue(under, unlimited{c}, true)
	}
	p := &Pending{sys: c.sys, to: ctx.Self(), cancel: func() {}}
	p.call.m, p.call.actor = m.m, p
	if cfg.Timeout > 0 {
		under, p.cancel = context.WithTimeout(under, cfg.Timeout)
	}
	if len(c.cfg.Interceptors) > 0 || of.Retry.Attempts > 1 || of.WaitForReady || c.pool != nil || !c.isConnected() {
		within := p.cancel
		under, p.cancel = context.WithCancel(under)
		c.rt.Scheduler().Go(func() {
			a := &Reply[R]{Call: p}
			defer func() {
				p.cancel()
				within()
				p.sys.Root.Send(p.to, a)
			}()
			tryCall(func() { a.Value, a.Err = Call(under, c, m, q) }, func(why *PanicError) {
				a.Err = &Error{Code: CodeUnknown, Method: m.m.name, Err: why}
			})
		})
		return p
	}
	p.reply = func(b []byte, err error) any {
		if err != nil {
			return &Reply[R]{Call: p, Err: err}
		}
		r := new(R)
		if err := c.ledger.decodeAnswer(m.m, b, r); err != nil {
			return &Reply[R]{Call: p, Err: err}
		}
		return &Reply[R]{Call: p, Value: r}
	}
	if err := p.startCall(under, c, q); err != nil {
		p.sendReply(nil, err)
	}
	return p
}

// startCall queues the request.
func (p *Pending) startCall(ctx context.Context, c *Client, q any) error {
	m := p.call.m
	scratch, body, err := c.packRequest(m, q)
	if err != nil {
		return err
	}
	defer scratch.put(len(body))
	l, err := c.startCall(ctx, ctx, &p.call, body, avoided{})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.link = l
	if !p.over && ctx.Done() != nil {
		p.stop = c.rt.Scheduler().OnDone(ctx, func() { p.cancelCall(contextError(ctx, m, FateUnknown)) })
	}
	return nil
}

// Cancel gives the call up: the handler's context is cancelled, and the answer is
// context.Canceled, unless it is on its way already. Any goroutine.
func (p *Pending) Cancel() {
	if p.reply == nil { // on a goroutine
		p.cancel()
		return
	}
	p.cancelCall(&Error{Code: CodeCanceled, Method: p.call.m.name})
}

func (p *Pending) cancelCall(err *Error) {
	p.mu.Lock()
	l := p.link
	p.mu.Unlock()
	if l == nil {
		return
	}
	if f, ok := l.cancelCall(&p.call, err); ok {
		err.Fate = f
		p.sendReply(nil, err)
	}
}

// callFinished records that the call is over: on the loop, unless the answer is large.
func (p *Pending) callFinished(c *clientCall) {
	if c.err != nil {
		p.sendReply(nil, c.err)
		return
	}
	c.ownReply()
	p.sendReply(c.reply, nil)
}

// sendReply sends the actor its Reply.
func (p *Pending) sendReply(b []byte, err error) {
	p.mu.Lock()
	p.over = true
	stop := p.stop
	p.mu.Unlock()
	if stop != nil {
		stop()
	}
	p.cancel()
	var a any
	defer func() { p.sys.Root.Send(p.to, a) }()
	tryCall(func() { a = p.reply(b, err) }, func(why *PanicError) {
		a = p.reply(nil, badMessage(p.call.m, "reply", why, FateAnswered))
	})
}
