package rpc

import (
	"context"
	"crypto/tls"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Info describes a call to an interceptor, and to a handler (InfoOf).
type Info struct {
	Method string
	Stream bool
	Server bool      // the call is being handled, not made
	Peer   rdma.Addr // the other side
	// Identity is who the other side is: of a secured connection what its key or certificate
	// proves (actor.Security). It is "" if the connection is not secured, or the peer needs no
	// certificate. In PSK mode a client sees the identity of its own key. At a client Peer,
	// Identity and TLS are those of the connection that there is when the call begins; a call that
	// waits or is repeated may go over a later one, to the same address.
	Identity string
	// TLS is what crypto/tls says of the connection, in TLS mode; nil otherwise. Calls share it, so
	// it must not be changed.
	TLS *tls.ConnectionState
	// Arrived is when the server has received the request. What has passed since is the time that
	// it has waited there: for memory, for its turn, for a goroutine. Zero at a client.
	Arrived time.Time
	// Request is the message (a *Q of the Method), or a []byte. A client's interceptor may replace
	// it by one of the same type before it goes on.
	Request any
	// Reply is the answer of a call, once next has returned without an error: a *R of the Method,
	// or a []byte. It may be replaced by one of the same type. A stream has none.
	Reply any
	// Ended is called once, when a stream that the client has opened has ended for its receiver:
	// with io.EOF at its end in order, otherwise with the error of Recv. Items may still wait to be
	// received. If another interceptor fails behind next, so that the caller gets no stream, it
	// is called with the error of Open. An interceptor of a client may set it; it calls what was
	// there before. It may be called on a loop, so it must not block. A call and a server have no
	// use for it.
	Ended func(error)
}

// An Interceptor is called around calls and streams, on either side. It calls next with the
// context that it was given, or one derived from it, and returns next's error or another one. If
// it does not call next, nothing is sent, or handled. If it returns nil all the same, it must have
// set Info.Reply: otherwise the call fails with ErrInternal. A stream has no Reply, so it fails.
// next may be called again when it has returned. Then its last call counts, and a stream that an
// earlier one has opened is closed. Around a stream, next returns at the server when the stream
// has ended, and at the client when it was opened. All retries of a call happen within one call of
// next. Interceptors are called on the caller's or the handler's goroutine; those of OnLoop
// handlers run on the loop, too.
type Interceptor func(ctx context.Context, call *Info, next func(context.Context) error) error

// chain puts interceptors around an invocation.
func chain(is []Interceptor, call *Info, ctx context.Context, invoke func(context.Context) error) error {
	if len(is) == 0 {
		return invoke(ctx)
	}
	return is[0](ctx, call, func(ctx context.Context) error { return chain(is[1:], call, ctx, invoke) })
}

// around calls do within the interceptors, and returns the answer that is in call.Reply in the
// end. went: do was called.
func around[A any](
	is []Interceptor, ctx context.Context, call *Info, m *method, do func(context.Context) (A, error),
) (answer A, went bool, err error) {
	err = chain(is, call, ctx, func(ctx context.Context) error {
		went, call.Reply = true, nil
		a, err := do(ctx)
		if err == nil {
			call.Reply = a
		}
		return err
	})
	answer, ok := call.Reply.(A)
	if err == nil && !ok && (!went || !m.stream) {
		err = unanswered(m, went)
	}
	return answer, went, err
}

// unanswered is the error of a call whose interceptors have returned neither an error nor an
// answer. went: the last one has called next.
func unanswered(m *method, went bool) error {
	e := &Error{Code: CodeInternal, Method: m.name, Message: "an interceptor has neither gone on nor answered", Fate: FateNotSent}
	if went {
		e.Message, e.Fate = "an interceptor has answered with nothing", FateUnknown
	}
	return e
}
