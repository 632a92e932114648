package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// Every failure of Dial is an *Error that names its kind and the address.
func TestDialErrorIsTyped(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		dial := func(ctx context.Context, addr string, is error) {
			r.t.Helper()
			_, err := Dial(ctx, r.Runtime(), addr)
			want(r.t, err, is, FateNotSent)
			if err == nil || !strings.Contains(err.Error(), addr) {
				r.t.Errorf("%v does not say that it is about %s", err, addr)
			}
		}
		dial(r.t.Context(), there+":1", ErrUnavailable) // no listener
		dial(r.t.Context(), "nonsense", ErrUnavailable)
		r.Silence(there)
		dial(r.within(time.Second), r.addr, ErrDeadline)
		gone, cancel := context.WithCancelCause(r.t.Context())
		why := errors.New("the user has closed the window")
		cancel(why)
		dial(gone, r.addr, context.Canceled)
		dial(gone, r.addr, why)
		r.Unsilence(there)
	})
}

// serveStrangers starts a listener of another protocol, which answers every request with answer.
func (r *rig) serveStrangers(answer any) (addr string) {
	r.t.Helper()
	pid := r.System().Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*rdma.ConnectRequest); ok {
			ctx.Respond(answer)
		}
	}, r.far.OnLoop()))
	at, err := rdma.Ask[*rdma.Listening](r.t.Context(), r.far, r.far.CreateID(pid, rdma.IDConfig{}), &rdma.Serve{Addr: there + ":0"})
	if err != nil {
		r.t.Fatal(err)
	}
	return at.Local.String()
}

// A client that dials a server of another protocol gets the text that this rejects it with.
func TestDialSaysWhyItWasRejected(t *testing.T) {
	inWorld(t, rigConfig{}, handleEcho, func(r *rig) {
		_, err := Dial(r.t.Context(), r.Runtime(), r.serveStrangers(&rdma.Reject{PrivateData: []byte("this is a chat/1 server")}))
		want(r.t, err, ErrForeignPeer, FateNotSent)
		if err == nil || !strings.Contains(err.Error(), `"this is a chat/1 server"`) {
			r.t.Errorf("%v does not say what the server has said", err)
		}
		_, err = Dial(r.t.Context(), r.Runtime(), r.serveStrangers(&rdma.Reject{}))
		want(r.t, err, ErrUnavailable, FateNotSent) // it may be overloaded
	})
}

// The error of a call that waited in vain for a connection states why there was none.
func TestWaitForReadySaysWhyItWaits(t *testing.T) {
	cfg := rigConfig{client: ClientConfig{Backoff: quick.Backoff, WaitForReady: true, MaxCalls: 1}}
	inWorld(t, cfg, handleEcho, func(r *rig) {
		r.s.Close()
		r.Advance(time.Second) // some attempts fail
		says := func(err, is error) {
			r.t.Helper()
			want(r.t, err, is, FateNotSent)
			var rejected *rdma.Rejected
			if !errors.As(err, &rejected) {
				r.t.Errorf("%v does not say that nobody listens", err)
			}
		}
		why := errors.New("the user is tired of it")
		ctx, cancel := context.WithTimeoutCause(r.t.Context(), time.Minute, why)
		defer cancel()
		errs := make(chan error, 1)
		go func() {
			_, err := CallRaw(ctx, r.c, echo, nil, nil)
			errs <- err
		}()
		r.Wait()
		_, err := CallRaw(r.t.Context(), r.c, echo, nil, nil)
		says(err, ErrOverloaded)
		err = <-errs
		says(err, ErrDeadline)
		says(err, why)
	})
}

// If a handler returns an error that wraps an *Error, its text is sent, but not the *Error's
// context, which belongs to another call.
func TestTextAroundAnErrorTravels(t *testing.T) {
	taken := &Error{Code: codeOf(errTaken), Message: "key a", Method: "kv.Put", Details: []byte("d")}
	for text, err := range map[string]error{
		"key a":                  taken,
		"x: key a":               fmt.Errorf("x: %w", taken),
		"x: y: key a":            fmt.Errorf("x: %w", fmt.Errorf("y: %w", taken)),
		"key a\nand the disk":    errors.Join(taken, errors.New("and the disk")),
		"x: taken":               fmt.Errorf("x: %w", &Error{Code: codeOf(errTaken), Method: "kv.Put"}),
		"x: the disk":            fmt.Errorf("x: %w", &Error{Code: codeOf(errTaken), Err: errors.New("the disk")}),
		"x: rpc: taken":          fmt.Errorf("x: %w", errTaken),
		"all of it in own words": inOwnWords{taken},
	} {
		code, got, details := wireError(err)
		if code != codeOf(errTaken) || got != text {
			t.Errorf("%v travels as %d %q, want %q", err, code, got, text)
		}
		if errors.Is(err, taken) != (string(details) == "d") {
			t.Errorf("%v travels with the details %q", err, details)
		}
	}
	inWorld(t, rigConfig{}, func(s *Server) {
		HandleRaw(s, fail, func(context.Context, []byte, []byte) ([]byte, error) { return nil, fmt.Errorf("x: %w", taken) })
	}, func(r *rig) {
		_, err := CallRaw(r.t.Context(), r.c, fail, nil, nil)
		want(r.t, err, errTaken, FateAnswered)
		if err.Error() != "rpc: test.Fail: taken: x: key a" {
			r.t.Error(err)
		}
	})
}

type inOwnWords struct{ error }

func (e inOwnWords) Error() string { return "all of it in own words" }

func (e inOwnWords) Unwrap() error { return e.error }
