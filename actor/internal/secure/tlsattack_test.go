package secure

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/internal/certtest"
)

// TestTLSFlips: one bit of any byte of any frame, and the side that receives it never ends up with
// a channel.
func TestTLSFlips(t *testing.T) {
	client, server := configs(t, certtest.New(t))
	var lengths []int
	var toServer []bool
	s := begin(t, client, server, tlsPeer, tlsPeer)
	if ce, se := s.run(func(_ int, frame []byte) []byte {
		lengths = append(lengths, len(frame))
		toServer = append(toServer, s.toServer)
		return frame
	}); ce != nil || se != nil {
		t.Fatal(ce, se)
	}
	tries := 0
	for at, length := range lengths {
		// Lengths of signatures vary by a byte or two.
		for i := 0; i < length-4; i++ {
			tries++
			s := begin(t, client, server, tlsPeer, tlsPeer)
			s.run(func(n int, frame []byte) []byte {
				if n == at {
					frame[i] ^= 1 << (i % 8)
				}
				return frame
			})
			if s.server.Done() || s.client.Done() && !toServer[at] {
				t.Errorf("byte %d of frame %d changed: client done %v, server done %v", i, at, s.client.Done(), s.server.Done())
			}
			s.client.Close()
			s.server.Close()
		}
	}
	if tries < 1000 {
		t.Errorf("%d tries", tries)
	}
}

// TestTLSBounds: a peer that sends without an end, or garbage, is refused within bounds.
func TestTLSBounds(t *testing.T) {
	client, server := configs(t, certtest.New(t))
	// A ClientHello of 65,535 bytes.
	longest := append([]byte{1, 0, 0xff, 0xff}, make([]byte, 1<<16)...)
	for why, send := range map[string]func(n int) []byte{
		"a byte at a time": func(n int) []byte { return longest[n : n+1] },
		"without an end": func(n int) []byte {
			if n == 0 {
				return longest[:8<<10]
			}
			return longest[8<<10 : 16<<10]
		},
		"too much at once": func(int) []byte { return append(longest, longest...) },
	} {
		s := begin(t, client, server, tlsPeer, tlsPeer)
		var err error
		for n := 0; err == nil && n < MaxTLSFrames+1; n++ {
			err = s.server.Take(append([]byte{frameHandshake, levelInitial}, send(n)...))
		}
		wantRefused(t, why, err)
		if err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("%s: %v, want that it is too much", why, err)
		}
		if alert := s.server.Next(); len(alert) != alertLen || alert[0] != frameAlert || s.server.Next() != nil {
			t.Errorf("%s: %x is sent, want an alert", why, alert)
		}
	}
	for why, frame := range map[string][]byte{
		"nothing": {}, "a type": {frameHandshake}, "an empty frame": {frameHandshake, levelHandshake},
		"another type": {1, 0, 0, 0, 0, 0, 0, 0}, "another level": {frameHandshake, 3, 1}, "early data": {frameHandshake, 1, 1},
		"sealed too early": append([]byte{frameHandshake, levelHandshake}, make([]byte, 40)...),
		"garbage":          append([]byte{frameHandshake, levelInitial}, bytes.Repeat([]byte{0xA5}, 500)...),
		"an alert":         {frameAlert, 40},
	} {
		s := begin(t, client, server, tlsPeer, tlsPeer)
		wantRefused(t, why, s.server.Take(frame))
		wantRefused(t, why+", and then", s.server.Take(s.client.Next()))
	}
	s := begin(t, client, server, tlsPeer, tlsPeer)
	if ce, se := s.run(nil); ce != nil || se != nil {
		t.Fatal(ce, se)
	}
	sealed, err := appendFrames(nil, levelHandshake, []byte{24, 0, 0, 1, 0}, MinTLSFrame, s.client.seal)
	if err != nil {
		t.Fatal(err)
	}
	err = s.server.Take(sealed[0])
	if wantRefused(t, "a frame after the end", err); err == nil || !strings.Contains(err.Error(), "after the end") {
		t.Errorf("%v, want that it is after the end", err)
	}
	if s.server.Done() {
		t.Error("still done")
	}
}

// TestTLSUnbound: a handshake that ends without a binding is refused, should crypto/tls allow one.
func TestTLSUnbound(t *testing.T) {
	client, server := configs(t, certtest.New(t))
	s := begin(t, client, server, tlsPeer, tlsPeer)
	_, err := s.run(func(_ int, frame []byte) []byte {
		s.server.bound = false
		return frame
	})
	if wantRefused(t, "not bound", err); s.server.Done() {
		t.Error("done")
	}
}

// TestTLSLongChains: local certificates must fit the room of the peer.
func TestTLSLongChains(t *testing.T) {
	a := certtest.New(t)
	client, server := configs(t, a)
	for range 60 {
		server.Certificates[0].Certificate = append(server.Certificates[0].Certificate, a.Cert.Raw)
	}
	s := begin(t, client, server, tlsPeer, tlsPeer)
	_, err := s.run(nil)
	wantRefused(t, "a long chain", err)
	wantConfig(t, "a long chain", err)
}

// TestTLSGivenUp: a peer that sends only part of its handshake is given up by the context.
func TestTLSGivenUp(t *testing.T) {
	client, server := configs(t, certtest.New(t))
	ctx, cancel := context.WithCancelCause(t.Context())
	s, err := NewTLSServer(ctx, server, tlsPeer)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewTLSClient(t.Context(), client, tlsPeer)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	hello := c.Next()
	if err := s.Take(hello[:10]); err != nil {
		t.Fatal(err)
	}
	slow := errors.New("too slow")
	cancel(slow)
	err = s.Take(append([]byte{frameHandshake, levelInitial}, hello[10:]...))
	if wantRefused(t, "what comes too late", err); !errors.Is(err, slow) {
		t.Errorf("%v, want %v", err, slow)
	}
	s.Close()
}

// TestTLSSplice: a frame of one handshake in the place of another's. Both sides have the same
// certificates in both.
func TestTLSSplice(t *testing.T) {
	client, server := configs(t, certtest.New(t))
	var recorded [][]byte
	var toServer []bool
	s := begin(t, client, server, tlsPeer, tlsPeer)
	if ce, se := s.run(func(_ int, frame []byte) []byte {
		recorded = append(recorded, bytes.Clone(frame))
		toServer = append(toServer, s.toServer)
		return frame
	}); ce != nil || se != nil {
		t.Fatal(ce, se)
	}
	for at := range recorded {
		s := begin(t, client, server, tlsPeer, tlsPeer)
		s.run(func(n int, frame []byte) []byte {
			if n == at {
				return recorded[n]
			}
			return frame
		})
		if s.server.Done() || s.client.Done() && !toServer[at] {
			t.Errorf("frame %d of another handshake: client done %v, server done %v", at, s.client.Done(), s.server.Done())
		}
	}
}

// TestTLSReplay: a replay of all the messages of a client is not authenticated.
func TestTLSReplay(t *testing.T) {
	client, server := configs(t, certtest.New(t))
	var recorded [][]byte
	s := begin(t, client, server, tlsPeer, tlsPeer)
	if ce, se := s.run(func(_ int, frame []byte) []byte {
		if s.toServer {
			recorded = append(recorded, bytes.Clone(frame))
		}
		return frame
	}); ce != nil || se != nil {
		t.Fatal(ce, se)
	}
	again, err := NewTLSServer(t.Context(), server, tlsPeer)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, frame := range recorded {
		err = again.Take(frame)
	}
	wantRefused(t, "the same frames", err)
}
