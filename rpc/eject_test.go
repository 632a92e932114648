package rpc

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"
)

// eject makes a server fail until the pool ejects it, and then makes it answer again.
func (f *fleet) eject(i int) {
	f.t.Helper()
	f.members[i].set(0, ErrInternal)
	for range 1000 {
		if f.isEjected(i) {
			break
		}
		_, _ = CallRaw(f.t.Context(), f.c, who, nil, nil)
	}
	if f.members[i].set(0, nil); !f.isEjected(i) {
		f.t.Errorf("server %d is not ejected", i)
	}
}

func (f *fleet) isEjected(i int) bool { return !f.c.Servers()[i].Ejected.IsZero() }

// hedgeAt makes a call that server i does not answer, so that another one does.
func (f *fleet) hedgeAt(silent int) {
	f.t.Helper()
	f.members[silent].set(time.Hour, nil)
	f.Advance(time.Millisecond)
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Second)
	defer cancel()
	if _, err := CallRaw(ctx, f.c, whoTwice, nil, nil); err != nil {
		f.t.Error(err)
	}
	f.members[silent].set(0, nil)
}

// An answer over a connection that has replaced the one of the ejection ends the ejection: it is
// the server's, whatever connection it has.
func TestEjectionAndAReplacedConnection(t *testing.T) {
	inFleet(t, 2, PoolConfig{Hedge: 50 * time.Millisecond, Eject: 5, EjectFor: time.Minute}, func(f *fleet) {
		f.connected()
		f.eject(0)
		since := f.c.Servers()[0].Connected
		e := f.c.endpoints[0]
		e.replaceLink(e.link) // as MaxConnectionAge makes it
		f.Advance(time.Second)
		if f.c.Servers()[0].Connected.Equal(since) || !f.isEjected(0) {
			f.t.Errorf("%+v, want another connection, and the server ejected", f.c.Servers()[0])
		}
		f.hedgeAt(1)
		if f.isEjected(0) {
			f.t.Errorf("%+v is ejected, and has answered", f.c.Servers()[0])
		}
		f.eject(0)
		if d := time.Until(f.c.Servers()[0].Ejected); d > time.Minute {
			f.t.Errorf("it is ejected for %v, as if it had not answered", d)
		}
	})
}

// A server whose ejection ends early starts slowly from then on, not from when its ejection would
// have ended.
func TestSlowStartAfterAnAnswer(t *testing.T) {
	inFleet(t, 2, PoolConfig{Hedge: 50 * time.Millisecond, EjectFor: time.Hour}, func(f *fleet) {
		f.connected()
		f.Advance(time.Minute)
		f.eject(0)
		f.hedgeAt(1)
		f.Advance(time.Minute)
		before := f.members[0].called()
		f.crowd(200)
		if n := f.members[0].called() - before; n < 80 {
			f.t.Errorf("%d of 200 calls a minute after its ejection", n)
		}
	})
}

// At most half of the servers that serve are ejected, also after others have stopped serving: the
// ejections that end soonest end then. Otherwise the few that are left would be overrun.
func TestServersLeaveWhileOthersAreEjected(t *testing.T) {
	inFleet(t, 5, PoolConfig{EjectFor: time.Hour, Balance: RoundRobin, SlowStart: -1}, func(f *fleet) {
		f.connected()
		f.eject(0)
		f.Advance(time.Second)
		f.eject(1)
		f.members[2].s.Close()
		f.Wait()
		if !f.isEjected(0) || !f.isEjected(1) {
			f.t.Error("two of four may be ejected")
		}
		f.members[3].s.Close()
		f.Wait()
		if f.isEjected(0) || !f.isEjected(1) {
			f.t.Error("one of three is ejected: the one that was ejected last")
		}
		f.members[4].s.Close()
		f.members[0].s.Close()
		f.Wait()
		if f.isEjected(1) {
			f.t.Error("the only server that serves is ejected")
		}
		if got := f.call(f.t.Context()); got != f.members[1].addr {
			f.t.Errorf("%q answers", got)
		}
	})
}

// A stream that the client ends for a reason that is its own says nothing about the server, also if
// the reason has the code of a server's failure.
func TestOwnErrorsEjectNoServer(t *testing.T) {
	why := ErrInternal
	cfg := PoolConfig{Eject: 2, ClientConfig: ClientConfig{Interceptors: []Interceptor{
		func(ctx context.Context, call *Info, next func(context.Context) error) error {
			call.OnReceive = func(any) error { return why }
			return next(ctx)
		},
	}}}
	inFleet(t, 2, cfg, func(f *fleet) {
		f.connected()
		for _, why = range []error{ErrInternal, ErrOverloaded} {
			for range 10 {
				in, err := Open(f.t.Context(), f.c, count, wrapperspb.Int64(3))
				if err != nil {
					f.t.Fatal(err)
				}
				if _, err = in.Receive(); !errors.Is(err, why) {
					f.t.Errorf("%v, want %v", err, why)
				}
			}
			if f.isEjected(0) || f.isEjected(1) {
				f.t.Errorf("a server is ejected because of the client's own error: %v", why)
			}
			f.Advance(time.Second) // the handlers end
		}
	})
}
