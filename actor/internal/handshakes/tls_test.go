package handshakes

import (
	"context"
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/internal/certtest"
)

// side is one side of a handshake, and how it begins.
type side struct {
	TLS
	server bool
	begin  func(context.Context) (*secure.TLS, error)
}

// sides returns both, with certificates that the other side accepts.
func sides(t *testing.T) (client, server *side) {
	a := certtest.New(t)
	hello := secure.Hello(make([]byte, 64))
	peer := secure.TLSPeer{Request: hello, Reply: hello, Receive: secure.MinTLSFrame, ServerName: "server.test"}
	of := &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{a.Named(t, "client.test", time.Hour)}}
	at := &tls.Config{
		ClientCAs: a.Pool(), ClientAuth: tls.RequireAndVerifyClientCert,
		Certificates: []tls.Certificate{a.Named(t, "server.test", time.Hour)},
	}
	client = &side{begin: func(ctx context.Context) (*secure.TLS, error) { return secure.NewTLSClient(ctx, of, peer) }}
	server = &side{server: true, begin: func(ctx context.Context) (*secure.TLS, error) { return secure.NewTLSServer(ctx, at, peer) }}
	return client, server
}

// next takes a step, if one is due, and passes its frames to the other side.
func (s *side) next(t *testing.T, other *side) *Outcome {
	t.Helper()
	step := s.Next(s.server)
	if step == nil {
		return nil
	}
	if step.First() {
		step.Begin(s.begin)
	}
	m := step.Compute()
	s.Done()
	for _, f := range m.Frames {
		if err := other.Put(f); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// A server waits for its peer, which begins. Both are done when each has the other's certificate,
// and not before.
func TestStepsOfTLS(t *testing.T) {
	client, server := sides(t)
	if server.Next(true) != nil {
		t.Error("the server begins")
	}
	var done [2]*Outcome
	for range 20 {
		for i, s := range []*side{client, server} {
			other := server
			if s == server {
				other = client
			}
			if done[i] != nil {
				continue
			}
			if m := s.next(t, other); m != nil && m.Err != nil {
				t.Fatal(m.Err)
			} else if m != nil && m.State != nil {
				done[i] = m
			}
		}
	}
	for i, s := range []*side{client, server} {
		if done[i] == nil {
			t.Fatalf("side %d is not done", i)
		}
		if name := IdentityOf(done[i].State); name != []string{"server.test", "client.test"}[i] {
			t.Errorf("side %d has talked to %q", i, name)
		}
		channel, _ := s.Finish(done[i])
		if channel == nil {
			t.Fatalf("side %d has no channel", i)
		}
		channel.Forget()
		if s.End(nil) {
			t.Error("something is left to be closed")
		}
	}
}

// Frames that arrive while a step is under way are for the next one.
func TestOneStepAtATime(t *testing.T) {
	var h TLS
	step := h.Next(false)
	if err := h.Put(make([]byte, 8)); step == nil || err != nil {
		t.Fatal(step, err)
	}
	if h.Next(false) != nil {
		t.Error("there are two steps at a time")
	}
	h.Done()
	if next := h.Next(false); next == nil || len(next.frames) != 1 {
		t.Error("the next step does not take what has come")
	}
}

// A handshake that is no longer needed has no further step, and a step under way then closes it.
func TestEndInAStep(t *testing.T) {
	client, _ := sides(t)
	step := client.Next(false)
	step.Begin(client.begin)
	if client.End(errors.New("for the test")) {
		t.Error("the step under way does not close it")
	}
	step.Compute()
	client.Done()
	if err := client.Put(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if client.tls != nil || client.Next(false) != nil {
		t.Error("it goes on")
	}

	client, _ = sides(t)
	step = client.Next(false)
	step.Begin(client.begin)
	step.Compute()
	if !client.End(nil) {
		t.Fatal("nobody closes it")
	}
	client.Close()
}

// Input before the handshake is done is bounded, in frames and in bytes.
func TestFramesAreBounded(t *testing.T) {
	var few TLS
	for n := 0; few.Put(make([]byte, 8)) == nil; n++ {
		if n > maxFramesCome {
			t.Fatalf("%d frames", n)
		}
	}
	var large TLS
	for n := 0; large.Put(make([]byte, 64<<10)) == nil; n++ {
		if n > maxFrameBytes>>16 {
			t.Fatalf("%d frames of 64 KiB", n)
		}
	}
}
