package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Info describes a call to an interceptor, and to a handler (InfoOf).
type Info struct {
	Method string
	Stream bool      // items are sent, in either direction or in both
	Server bool      // the call is being handled, not made
	Peer   rdma.Addr // the other side
	// Identity is the identity of the other side, as proved by its key or certificate on a secured
	// connection (actor.Security). It is "" if the connection is not secured, or the peer needs no
	// certificate. In PSK mode a client sees the identity of its own key. At a client, Peer,
	// Identity and TLS belong to the current connection when the call begins; a call that waits or
	// is repeated may go over a later one, to the same address.
	Identity string
	// TLS is crypto/tls's state of the connection in TLS mode; nil otherwise. Calls share it, so it
	// must not be changed.
	TLS *tls.ConnectionState
	// Arrived is the time when the server received the request. The time since then was spent
	// waiting: for memory, for its turn, for a goroutine. Zero at a client.
	Arrived time.Time
	// Request is the message (a *Q of the Method), or a []byte. A client's interceptor may replace
	// it by one of the same type before it goes on. It is nil if the client sends a stream.
	Request any
	// Reply is the answer of a call, once next has returned without an error: a *R of the Method,
	// or a []byte. It may be replaced by one of the same type, and may be kept. A stream of items
	// has none; the answer to a client's stream is here at the server only.
	Reply any
	// OnSend is called with every item that this side sends on a stream, before it is encoded, and
	// OnReceive with every item that it has received and decoded: a *Q or a *T. At a client
	// OnReceive is also called with the answer to its stream (a *R). They are called on the
	// goroutine that sends or receives, may change the item, and their error is that of Send, or of
	// Receive, which ends the stream. An interceptor may set them before it calls next, and then
	// calls the previous functions. They are unused for calls.
	OnSend, OnReceive func(item any) error
	// Ended is called once, when a stream that the client opened ends for its receiver: with io.EOF
	// at its end in order, otherwise with the error of Receive. Items may still wait to be
	// received. If another interceptor fails behind next, so that the caller gets no stream, it is
	// called with the error of Open. An interceptor of a client may set it, and then calls the
	// previous function. It may be called on a loop, so it must not block. It is unused for calls
	// and at servers.
	Ended func(error)

	// At a client: the stream that was opened, if the caller may still get it, and whether one was.
	stream *clientStream
	opened bool
}

// An Interceptor is called around calls and streams, on either side. It calls next with the context
// that it was given, or one derived from it, and returns next's error or another one. If it does
// not call next, nothing is sent, or handled. If it still returns nil, it must have set Info.Reply:
// otherwise the call fails with ErrInternal. A stream has no Reply, so it fails. Around a stream,
// next returns at the server when the stream has ended, and at the client when it was opened. All
// retries of a call happen within one call of next. Interceptors are called on the caller's or the
// handler's goroutine; those of OnLoop handlers run on the loop, too.
//
// next may be called more than once, also at the same time: the answer is that of the last
// successful call of next. A stream that an earlier one opened is closed. If all fail, the call's
// Fate is FateUnknown when any of them may have been executed.
//
// An interceptor may call next on another goroutine, and return before next has, as net/http's
// TimeoutHandler does. The result of next is then discarded: an answer is dropped, and a stream is
// closed. At a server the abandoned handler keeps its place and its request until it returns, so it
// should obey its context, which is cancelled. While next runs, the
// interceptor must not touch its Info. A call of next after the interceptor has returned fails. A
// panic in next is that of the goroutine that has called it.
type Interceptor func(ctx context.Context, call *Info, next func(context.Context) error) error

// passage is a call on its way through interceptors to do, the function that they wrap.
//
// An interceptor may call next on another goroutine, and return before next has. So every call of
// next has a separate Info. Its results are copied to the interceptor's Info, unless the
// interceptor has returned by then.
type passage struct {
	is   []Interceptor
	m    *method
	info *Info                                       // Info of the outermost interceptor
	do   func(ctx context.Context, call *Info) error // sets call.Reply, or call.stream
	// notifies call.Ended of a stream that did not reach the caller
	unopened func(call *Info)

	mu      sync.Mutex
	went    bool   // do was called
	out     int    // calls of do that have not returned
	unsure  bool   // a call of do has returned, and the call may have been executed
	running int    // calls of next that have not returned
	over    bool   // the outermost interceptor has returned
	done    func() // called when running is 0; nil: none
}

// runInterceptors calls the interceptors. At a client the error has the fate of all calls of do.
func (p *passage) runInterceptors(ctx context.Context) error {
	err := p.callInterceptor(ctx, 0, p.info)
	if err == nil || p.info.Server {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return inAll(err, p.unsure || p.out > 0)
}

// callInterceptor calls interceptor i, or do after the last one.
func (p *passage) callInterceptor(ctx context.Context, i int, call *Info) error {
	if i == len(p.is) {
		return p.goOn(ctx, call)
	}
	h := &hop{p: p, i: i, call: call}
	defer h.markLeft()
	return p.is[i](ctx, call, h.callNext)
}

// goOn calls do.
func (p *passage) goOn(ctx context.Context, call *Info) (err error) {
	p.mu.Lock()
	p.went = true
	p.out++
	p.mu.Unlock()
	returned := false
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.out--
		e, ok := errors.AsType[*Error](err)
		p.unsure = p.unsure || !returned || !ok || !e.Fate.NotExecuted()
	}()
	err = p.do(ctx, call)
	returned = true
	return err
}

// whileAwaited runs fn, unless the outermost interceptor has returned. It does not return while fn
// runs: so fn may use the caller's arguments.
func (p *passage) whileAwaited(fn func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return p.tooLate()
	}
	return fn()
}

// atEnd registers done, which is called when the last call of next has returned. It reports whether
// one is still running; otherwise done is not called. runInterceptors has returned.
func (p *passage) atEnd(done func()) (running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if running = p.running > 0; running {
		p.done = done
	}
	return running
}

// tooLate returns the error of a call of next whose interceptor has returned.
func (p *passage) tooLate() error {
	return &Error{Code: CodeCanceled, Method: p.m.name, Message: "an interceptor has returned before", Fate: FateNotSent}
}

// hop is an interceptor that is being called.
type hop struct {
	p    *passage
	i    int
	call *Info
	left bool // the interceptor has returned; p.mu
}

func (h *hop) markLeft() {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	h.left = true
	if h.i == 0 {
		h.p.over = true
	}
}

// callNext calls the next interceptor, or do. The interceptor gets it as an argument.
func (h *hop) callNext(ctx context.Context) (err error) {
	in, err := h.beginNext()
	if err != nil {
		return err
	}
	ok := false
	defer func() { h.endNext(in, ok) }()
	if in.Server {
		ctx = context.WithValue(ctx, infoKey{}, in)
	}
	err = h.p.callInterceptor(ctx, h.i+1, in)
	ok = err == nil
	return err
}

// beginNext makes the Info of a call of callNext. A stream that an earlier one has opened is
// closed.
func (h *hop) beginNext() (*Info, error) {
	h.p.mu.Lock()
	if h.left || h.p.over {
		h.p.mu.Unlock()
		return nil, h.p.tooLate()
	}
	h.p.running++
	earlier := h.call.stream
	h.call.stream = nil
	in := *h.call
	in.Reply, in.opened = nil, false
	h.p.mu.Unlock()
	if earlier != nil {
		earlier.closeStream(nil)
	}
	return &in, nil
}

// endNext copies the results of a call of next, unless the interceptor has returned.
func (h *hop) endNext(in *Info, ok bool) {
	h.p.mu.Lock()
	h.p.running--
	unwanted := in.stream
	if !h.left {
		h.call.Ended, h.call.OnSend, h.call.OnReceive = in.Ended, in.OnSend, in.OnReceive
		h.call.opened = h.call.opened || in.opened
		if ok {
			unwanted = h.call.stream // opened by another call of next, which ran in parallel
			h.call.Reply, h.call.stream = in.Reply, in.stream
		}
	}
	unopened := h.left && in.opened
	var done func()
	if h.p.over && h.p.running == 0 {
		done, h.p.done = h.p.done, nil
	}
	h.p.mu.Unlock()
	if unwanted != nil {
		unwanted.closeStream(nil)
	}
	if unopened {
		h.p.unopened(in)
	}
	if done != nil {
		done()
	}
}

// answerOf calls the interceptors, and returns the answer that is in the outermost one's Reply in
// the end.
func answerOf[A any](ctx context.Context, p *passage) (answer A, err error) {
	err = p.runInterceptors(ctx)
	if err != nil {
		return answer, err
	}
	answer, ok := p.info.Reply.(A)
	if !ok && (!p.m.items || !p.hasGone()) {
		return answer, p.unansweredError()
	}
	return answer, nil
}

// hasGone reports whether do was called.
func (p *passage) hasGone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.went
}

// unansweredError returns the error of a call whose interceptors return neither an error nor an
// answer.
func (p *passage) unansweredError() error {
	e := &Error{Code: CodeInternal, Method: p.m.name, Message: "an interceptor has neither gone on nor answered", Fate: FateNotSent}
	if p.hasGone() {
		e.Message, e.Fate = "an interceptor has answered with nothing", FateUnknown
	}
	return e
}
