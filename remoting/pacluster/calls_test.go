package pacluster

import (
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// answering is a cluster.Context that answers each request with the same, and keeps its options.
type answering struct {
	cluster.Context
	res    any
	err    error
	config cluster.GrainCallConfig
}

func (a *answering) Request(_, _ string, _ any, opts ...cluster.GrainCallOption) (any, error) {
	for _, o := range opts {
		o(&a.config)
	}
	return a.res, a.err
}

func unhalted() bool { return false }

func TestCalls(t *testing.T) {
	unknown := &remoting.Unknown{Target: actor.NewPID("a", "b"), Err: remoting.ErrPeerShutdown}
	refused := &remoting.Refused{Target: actor.NewPID("a", "b"), Err: remoting.ErrDenied}
	own := cluster.NewGrainErrorResponse(cluster.ErrorReason_NOT_FOUND, "no such cart")
	answer := wrapperspb.String("x")
	for what, tt := range map[string]struct {
		res     any
		err     error
		wantRes any
		wantErr error
	}{
		"an answer":         {res: answer, wantRes: answer},
		"an unknown fate":   {res: unknown, wantErr: unknown},
		"a refusal":         {res: refused, wantErr: refused},
		"the grain's error": {res: own, wantRes: own},
		"an error":          {err: actor.ErrTimeout, wantErr: actor.ErrTimeout},
	} {
		a := &answering{res: tt.res, err: tt.err}
		res, err := calls{a, unhalted, nil}.Request("id", "kind", answer)
		if res != tt.wantRes || !errors.Is(err, tt.wantErr) {
			t.Errorf("%s gives %v, %v", what, res, err)
		}
	}
}

// A caller's options count, and else the time.
func TestCallOptions(t *testing.T) {
	a := &answering{}
	if _, err := (calls{a, unhalted, nil}).Request("id", "kind", nil); err != nil {
		t.Fatal(err)
	}
	begun, n := time.Now(), 0
	for range 5 {
		n = a.config.RetryAction(n)
	}
	if d := time.Since(begun); n != 5 || d < 5*retryFirst || a.config.RetryCount < 1<<20 {
		t.Errorf("%d attempts took %v, and there may be %d", n, d, a.config.RetryCount)
	}
	if _, err := (calls{a, unhalted, nil}).Request("id", "kind", nil, cluster.WithRetryCount(2)); err != nil || a.config.RetryCount != 2 {
		t.Errorf("%v, %+v", err, a.config)
	}
}
