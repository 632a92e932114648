package rpc

import (
	"errors"
	"testing"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// The error of a call whose server was stopped reports that, with the right fate, as after every
// other end of a connection.
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

// When a connection's actor is stopped the fate of its requests is unknown. So no error claims that
// a request was not sent.
func TestStoppedConnectionIsUnsure(t *testing.T) {
	inWorld(t, rigConfig{client: quick}, func(s *Server) { handleBlock(s) }, func(r *rig) {
		errs := r.calling(r.c, 1)
		r.System().Root.Stop(r.c.link().out.pid)
		want(r.t, <-errs, ErrUnavailable, FateUnknown)
	})
}
