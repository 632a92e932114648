package actor

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// failing is a cause for which connections do not come about.
type failing struct {
	server, client *Security
	before         int    // connections are tried before, which are made unless it is stuck
	stuck          bool   // the listener computes nothing, so handshakes that have begun stay
	limits         Limits // of both sides
	cause          string // a row of docs/operating.md
}

// failures returns the causes that docs/operating.md explains.
func failures(tb testing.TB) []failing {
	using := func(c Credential) *Security {
		s := psk(tb)
		if err := s.Keys.Use(c); err != nil {
			tb.Fatal(err)
		}
		return s
	}
	none := &Security{}
	with := func(s *Security, change func(*Security)) *Security {
		own := *s
		if own.TLS != nil {
			own.TLS = own.TLS.Clone()
		}
		change(&own)
		return &own
	}
	of := newCerts(tb)
	for _, s := range []*Security{of.server, of.client} {
		s.TLS.Time = func() time.Time { return of.Cert.NotAfter.Add(-time.Minute) }
	}
	certified := func(c tls.Certificate) func(*Security) {
		return func(s *Security) { s.TLS.Certificates = []tls.Certificate{c} }
	}
	named := func(name string) *Security { return with(of.client, func(s *Security) { s.TLS.ServerName = name }) }
	expired := of.Named(tb, "server.test", -time.Hour)
	return []failing{
		{cause: "wrong key", server: psk(tb), client: using(credential("alice", 9))},
		{cause: "key rotated away", server: psk(tb), client: using(credential("alice", 2))},
		{cause: "listener has no mode", server: none, client: psk(tb)},
		{cause: "dialler has no mode", server: psk(tb), client: none},
		{cause: "one has PSK, the other TLS", server: of.server, client: psk(tb)},
		{cause: "listener's certificate has expired", server: with(of.server, certified(expired)), client: named("server.test")},
		{cause: "dialler's certificate has expired", server: of.server, client: with(of.client, certified(expired))},
		{cause: "dialler has no certificate", server: of.server, client: with(of.client, func(s *Security) { s.TLS.Certificates = nil })},
		{cause: "wrong name", server: of.server, client: named("other.test")},
		{cause: "unknown authority", server: of.server, client: with(of.client, func(s *Security) { s.TLS.RootCAs = newCerts(tb).Pool() })},
		{cause: "not authorized", client: psk(tb), server: with(psk(tb), func(s *Security) {
			s.Authorize = func(*ConnectRequest) (PeerLimits, *Reject) {
				return PeerLimits{}, &Reject{PrivateData: []byte("not today")}
			}
		})},
		{cause: "identity over its limit", client: psk(tb), before: 1, server: with(psk(tb), func(s *Security) {
			s.Authorize = func(*ConnectRequest) (PeerLimits, *Reject) { return PeerLimits{Connections: 1}, nil }
		})},
		{cause: "crowded", server: psk(tb), client: psk(tb), limits: Limits{Handshakes: 4}, before: 8, stuck: true},
	}
}

// TestFailedHandshakes compares the description of failed handshakes in docs/operating.md with the
// observations at both sides.
func TestFailedHandshakes(t *testing.T) {
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, text, _ := strings.Cut(ErrNoSecurity.Error(), ", and "); !strings.Contains(string(page), strings.TrimSuffix(ErrNoSecurity.Error(), text)) {
		t.Errorf("the page lacks %q", ErrNoSecurity)
	}
	_, table, _ := strings.Cut(string(page), "\n## When a handshake fails\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := make(map[string][]string)
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); len(cells) == 4 {
			rows[strings.TrimPrefix(cells[0], "| ")] = cells[1:]
		}
	}
	all := failures(t)
	if len(rows) != len(all)+1 { // and the head
		t.Errorf("the page has %d causes, and there are %d", len(rows)-1, len(all))
	}
	for _, c := range all {
		t.Run(c.cause, func(t *testing.T) {
			var log bytes.Buffer
			inWorld(t, flavors["iwarp"], func(w *world) {
				seen := w.fails(c, &log)
				for i, cell := range rows[c.cause] {
					if says := strings.Trim(cell, "` |\n"); !strings.Contains(seen[i], says) || says == "" {
						t.Errorf("the page has %q, and this is seen: %q", says, seen[i])
					}
				}
				if len(rows[c.cause]) == 0 {
					t.Errorf("the page has nothing. This is seen: %q", seen)
				}
			}, Config{Limits: c.limits, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		})
	}
}

// fails connects in vain, and returns what there is to see: the error, the listener's line, and the
// reasons that the two sides have counted.
func (w *world) fails(c failing, log *bytes.Buffer) (seen [3]string) {
	w.Helper()
	w.accepter(IDConfig{Security: c.server})
	dial := func() *probe {
		p := w.probe()
		p.send(w.rt.CreateID(p.pid, IDConfig{Security: c.client}), &Dial{Addr: there + ":7471"})
		return p
	}
	if c.stuck {
		all := &w.far.computing
		for range all.Most {
			all.Enter(netip.Addr{}, func() {})
			defer all.Leave(netip.Addr{})
		}
	}
	for range c.before {
		if p := dial(); !c.stuck {
			next[*Established](p)
		}
	}
	if f, ok := dial().any().msg.(Failure); ok {
		seen[0] = Brief(f)
		// the advice to compare keys is for those whose keys the peer has looked at
		if crowded := errors.Is(f, unix.EAGAIN); crowded && strings.Contains(f.Error(), "keys") {
			w.Errorf("%s: %v", c.cause, f)
		}
	} else {
		w.Errorf("%s: it has not failed", c.cause)
	}
	settle()
	for line := range strings.Lines(log.String()) {
		var of struct{ Msg, Err, Local string }
		if err := json.Unmarshal([]byte(line), &of); err != nil {
			w.Fatal(err)
		}
		if strings.HasPrefix(of.Local, there) {
			seen[1] = of.Msg + ": " + of.Err
		}
	}
	near, far := w.totals()
	seen[2] = reasons(near.Dialled) + ", " + reasons(far.Answered)
	return seen
}

// reasons returns why handshakes have failed, as in docs/operating.md.
func reasons(h Handshakes) (s string) {
	for f, n := range h.Failed {
		if n > 0 {
			s += "`" + HandshakeFailure(f).String() + "`"
		}
	}
	return cmp.Or(s, "none")
}
