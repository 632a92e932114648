package rpc

import (
	"errors"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// A call whose server was stopped says so, and is as honest about its fate as any other whose
// connection has ended.
func TestServerIsLost(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		failed := make(chan error, 1)
		r.Freeze("mem1")
		begin := r.Elapsed()
		go func() {
			_, err := CallRaw(r.t.Context(), r.c, echo, []byte("are you there?"), nil)
			failed <- err
		}()
		err := <-failed
		if d := r.Elapsed() - begin; d > 52*time.Second {
			t.Errorf("it was noticed after %v", d)
		}
		var e *Error
		if !errors.Is(err, ErrUnavailable) || !errors.As(err, &e) || e.Fate != FateUnknown || !errors.Is(e.Err, rdma.ErrPeerLost) {
			t.Errorf("the call failed with %v", err)
		}
		r.Thaw("mem1")
	})
}

// When a connection's actor is stopped, and hears no more of what became of what it has sent,
// nothing says that it was not sent.
func TestStoppedConnectionIsUnsure(t *testing.T) {
	inWorld(t, rigConfig{client: quick}, func(s *Server) { handleBlock(s) }, func(r *rig) {
		errs := r.calling(r.c, 1)
		r.System().Root.Stop(r.c.link.out.pid)
		want(r.t, <-errs, ErrUnavailable, FateUnknown)
	})
}
