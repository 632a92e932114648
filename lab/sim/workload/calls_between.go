package workload

import (
	"context"
	"errors"
	"slices"

	"github.com/rdmactor/rdmactor/internal/sim/world"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
	"github.com/rdmactor/rdmactor/rpc"
)

// Actions of interceptors, instead of calling next or after that.
const (
	serverAnswers    = "the server's interceptor answers"
	serverRefuses    = "the server's interceptor returns an error"
	serverPanics     = "the server's interceptor panics"
	serverPanicsLate = "the server's interceptor panics behind the handler"
	clientAnswers    = "the client's interceptor answers"
	clientRefuses    = "the client's interceptor returns an error"
	clientPanics     = "the client's interceptor panics"
	clientPanicsLate = "the client's interceptor panics behind the call"
)

var betweens = []string{
	serverAnswers, serverRefuses, serverPanics, serverPanicsLate, clientAnswers, clientRefuses, clientPanics, clientPanicsLate,
}

// newInterceptors returns the interceptors of a side, if an operation needs some. They pass on all
// other calls and streams.
func (w *calls) newInterceptors(server bool) []rpc.Interceptor {
	needs := func(op Op) bool {
		o, ok := op.(*callOp)
		return ok && o.between != ""
	}
	switch {
	case !slices.ContainsFunc(w.ops, needs):
		return nil
	case server:
		return []rpc.Interceptor{w.atServer}
	}
	return []rpc.Interceptor{w.atClient}
}

// betweenKey is the key of a call in its caller's context.
type betweenKey struct{}

// errBetween is the value with which interceptors panic.
var errBetween = errors.New("the interceptor was asked to")

// atClient intercepts a client's calls.
func (w *calls) atClient(ctx context.Context, info *rpc.Info, next func(context.Context) error) error {
	x, _ := ctx.Value(betweenKey{}).(*call)
	if x == nil {
		return next(ctx)
	}
	switch x.op.between {
	case clientAnswers:
		answerForHandler(info, x)
		return nil
	case clientRefuses:
		return errOfService
	case clientPanics:
		panic(errBetween)
	case clientPanicsLate:
		_ = next(ctx) // its outcome is lost
		panic(errBetween)
	}
	return next(ctx)
}

// atServer intercepts a server's calls.
func (w *calls) atServer(ctx context.Context, info *rpc.Info, next func(context.Context) error) error {
	x := w.callOf(info.Request)
	if x == nil {
		return next(ctx)
	}
	switch x.op.between {
	case serverAnswers:
		answerForHandler(info, x)
		return nil
	case serverRefuses:
		x.Instead(errorForm(errOfService))
		return errOfService
	case serverPanics:
		x.Instead(codeName(rpc.CodeInternal))
		panic(errBetween)
	case serverPanicsLate:
		_ = next(ctx) // the panic counts
		x.Instead(codeName(rpc.CodeInternal))
		panic(errBetween)
	}
	return next(ctx)
}

// callOf returns the call to which a request belongs; nil: the request is nonsense.
func (w *calls) callOf(request any) *call {
	q, raw := request.([]byte)
	if p, ok := request.(*rpc.Bytes); ok {
		q = *p
	} else if !raw {
		return nil // the client sends a stream
	}
	if n := oracle.NumberOf(q); n < uint64(len(w.made)) {
		return w.made[n]
	}
	return nil
}

// answerForHandler answers a call in place of its handler.
func answerForHandler(info *rpc.Info, x *call) {
	x.Instead("")
	r := rpc.Bytes(x.Reply())
	if _, raw := info.Request.([]byte); raw {
		info.Reply = []byte(r)
		return
	}
	info.Reply = &r
}

// tryCall makes a call whose interceptors may panic. A client's interceptor panics in its caller.
func (w *calls) tryCall(x *call, do func()) {
	defer func() {
		r := recover()
		w.excuseCall(x)
		switch {
		case r == nil:
		case r != any(errBetween):
			panic(r)
		case x.op.between == clientPanics:
			x.NotExecuted(w.World.Now())
		default:
			x.Unknown(w.World.Now())
		}
	}()
	do()
}

// item is an item of a stream. If it has a process, encoding it takes a while, in which other
// goroutines run.
type item struct {
	b []byte
	p *world.Process
}

// AppendBinary implements encoding.BinaryAppender.
func (i *item) AppendBinary(b []byte) ([]byte, error) {
	if i.p != nil {
		i.p.Sleep(0)
	}
	return append(b, i.b...), nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (i *item) UnmarshalBinary(b []byte) error {
	i.b = slices.Clone(b)
	return nil
}
