//go:build linux && rdma

package ucm_test

import (
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
)

// faultRoles are what another process does until it is killed.
var faultRoles = map[string]func(s *side, at cmid.Addr){
	"resolved":   func(s *side, at cmid.Addr) { s.resolved(at) },
	"connecting": func(s *side, at cmid.Addr) { s.connect(at); say("ready"); s.sleep() },
	"connected": func(s *side, at cmid.Addr) {
		c := s.connect(at)
		await[*cmid.Established](s, c.id)
		say("ready")
		for {
			c.talk(slots / 2)
			s.turn(time.Second)
		}
	},
	"disconnecting": func(s *side, at cmid.Addr) {
		c := s.connect(at)
		await[*cmid.Established](s, c.id)
		c.talk(1)
		s.until("the send", func() bool { return c.sent == 1 })
		s.must(c.id.Disconnect())
	},
	"listening": func(s *side, _ cmid.Addr) {
		say("at", s.listen("RDMA_ADDR", 0).LocalAddr())
		s.sleep()
	},
	"asked": func(s *side, _ cmid.Addr) {
		say("at", s.listen("RDMA_ADDR", 0).LocalAddr())
		s.request()
	},
	"accepted": func(s *side, _ cmid.Addr) {
		say("at", s.listen("RDMA_ADDR", 0).LocalAddr())
		s.must(s.request().id.Accept(nil, nil))
		say("ready")
		s.sleep()
	},
	"everything":  everything,
	"credentials": changesCredentials,
}

// sleep leaves the channel alone until the process is killed.
func (s *side) sleep() { time.Sleep(time.Hour) }

// TestFaultProcess is the other process of the tests here: it does nothing unless it is given its
// role.
func TestFaultProcess(t *testing.T) {
	role := os.Getenv("FAULT_ROLE")
	if role == "" {
		return
	}
	time.AfterFunc(2*time.Minute, func() { os.Exit(1) }) // it was not killed
	var at cmid.Addr
	if text := os.Getenv("FAULT_AT"); text != "" {
		at.AddrPort = netip.MustParseAddrPort(text)
	}
	s := newSide(t)
	faultRoles[role](s, at)
	say("ready")
	for {
		s.turn(time.Second)
	}
}

// A client that is killed, in every state: its server is notified at most once, and nothing hangs
// or stays.
func TestFaultClientKilled(t *testing.T) {
	siw := env(t, "RDMA_KIND") == "siw"
	for role, test := range map[string]func(t *testing.T, s *side, p *process){
		"resolved": func(t *testing.T, s *side, p *process) {
			p.hears("ready")
			p.kill()
			s.quiet()
			if s.all() != "" {
				t.Errorf("got %s of a peer that has not asked", s.all())
			}
		},
		"connecting": func(t *testing.T, s *side, p *process) {
			p.hears("ready")
			if !s.readable(faultPatience) {
				t.Fatal("no request")
			}
			p.shoot()
			s.answersTheDead(s.request())
		},
		"connecting, request received": func(t *testing.T, s *side, p *process) {
			c := s.request()
			p.shoot()
			s.answersTheDead(c)
		},
		"connecting, accepted": func(t *testing.T, s *side, p *process) {
			c := s.request()
			s.must(c.id.Accept(nil, nil))
			p.kill()
			if siw {
				await[*cmid.Established](s, c.id)
				await[*cmid.Disconnected](s, c.id)
			} else { // the accept is under way when its peer goes, or comes too late
				s.until("the end", func() bool { return s.of(c.id.Handle()) != "ConnectRequest" })
			}
			s.quiet()
			s.wantDelivered(c.id, "ConnectRequest Rejected", "ConnectRequest CommandFailed", "ConnectRequest Established Disconnected")
			s.destroy(c.id)
		},
		"connected": func(t *testing.T, s *side, p *process) {
			c := s.established()
			s.until("traffic", func() bool { c.talk(0); return c.received > 2*slots && c.sent > slots })
			p.shoot()
			s.until("the end", func() bool { c.talk(0); return strings.Contains(s.of(c.id.Handle()), "Disconnected") })
			if !siw {
				s.must(c.id.Disconnect())
			}
			s.until("the flush of all that was posted", c.flushed)
			s.quiet()
			if !c.flushed() {
				t.Errorf("%d of %d receives and %d of %d sends have succeeded, and %d failed", c.received, c.posted, c.sent, c.issued, c.failures)
			}
			s.wantDelivered(c.id, "ConnectRequest Established Disconnected", "ConnectRequest Established Disconnected TimewaitExit")
			s.destroy(c.id)
		},
		"disconnecting": func(t *testing.T, s *side, p *process) {
			c := s.established()
			s.until("the message", func() bool { return c.received == 1 })
			await[*cmid.Disconnected](s, c.id)
			p.kill()
			if !siw {
				s.must(c.id.Disconnect())
			}
			s.quiet()
			s.wantDelivered(c.id, "ConnectRequest Established Disconnected", "ConnectRequest Established Disconnected TimewaitExit")
			s.destroy(c.id)
		},
		"connected, frozen, disconnected by us": func(t *testing.T, s *side, p *process) {
			c := s.established()
			s.until("traffic", func() bool { return c.received > 0 })
			s.must(p.cmd.Process.Signal(syscall.SIGSTOP))
			s.must(c.id.Disconnect())
			p.kill()
			await[*cmid.Disconnected](s, c.id)
			s.quiet()
			s.wantDelivered(c.id, "ConnectRequest Established Disconnected", "ConnectRequest Established Disconnected TimewaitExit")
			s.destroy(c.id)
		},
	} {
		t.Run(role, func(t *testing.T) {
			leavesNothing(t)
			s := newSide(t)
			defer s.close()
			l := s.listen("RDMA_ADDR", 0)
			does, _, _ := strings.Cut(role, ",")
			p := startProcess(t, does, "FAULT_AT="+l.LocalAddr().String())
			test(t, s, p)
			s.destroy(l)
			p.ends()
		})
	}
}

// established accepts.
func (s *side) established() *conn {
	s.Helper()
	c := s.request()
	s.must(c.id.Accept(nil, nil))
	await[*cmid.Established](s, c.id)
	return c
}

// answersTheDead accepts a request whose sender has gone: either that fails, or the end of the
// connection is notified.
func (s *side) answersTheDead(c *conn) {
	s.Helper()
	time.Sleep(faultQuiet) // the kernel is ending it: on siw for up to 10 s, unless it is answered
	begin := time.Now()
	if err := c.id.Accept(nil, nil); err != nil {
		s.Logf("accept: %v", err)
	} else {
		s.until("the end", func() bool { return strings.Count(s.of(c.id.Handle()), " ") > 0 })
	}
	s.quiet()
	if took := time.Since(begin); took > faultPrompt {
		s.Errorf("that its peer has gone was reported after %v", took)
	}
	s.wantDelivered(c.id, "ConnectRequest", "ConnectRequest Rejected", "ConnectRequest ConnectError", "ConnectRequest Established Disconnected")
	s.destroy(c.id)
}

// A server that is killed, in every state: its client is notified once.
func TestFaultServerKilled(t *testing.T) {
	for role, wants := range map[string][]string{
		"listening": {"Rejected"},
		"asked":     {"Rejected"},
		// InfiniBand: the answer has come, and then its end; iWARP has been connected for a moment.
		"accepted": {"ConnectError", "Rejected", "Established Disconnected", "Established Disconnected TimewaitExit"},
	} {
		t.Run(role, func(t *testing.T) {
			leavesNothing(t)
			s := newSide(t)
			defer s.close()
			p := startProcess(t, role)
			c := s.connect(cmid.Addr{AddrPort: netip.MustParseAddrPort(p.hears("at"))})
			if role == "listening" {
				s.turn(time.Second)
			} else {
				p.hears("ready")
			}
			p.kill()
			s.until("the end", func() bool {
				delivered := s.of(c.id.Handle())
				return strings.Contains(delivered, "Rejected") || strings.Contains(delivered, "Disconnected") || strings.Contains(delivered, "Error")
			})
			s.quiet()
			for i := range wants {
				wants[i] = "AddrResolved RouteResolved " + wants[i]
			}
			s.wantDelivered(c.id, wants...)
			s.destroy(c.id)
		})
	}
}

// everything keeps identifiers in every possible state, and never destroys them.
func everything(s *side, _ cmid.Addr) {
	l := s.listen("RDMA_ADDR", 0)
	var pairs []*conn
	for range 5 {
		a, b := pair(s, s, l)
		pairs = append(pairs, a, b)
	}
	if env(s.T, "RDMA_KIND") == "rxe" {
		s.must(pairs[0].id.Disconnect())
		await[*cmid.Disconnected](s, pairs[1].id)
		u := s.create(cmid.PortSpaceUDP)
		s.must(u.BindAddr(cmid.AddrFrom(addr(s.T, "RDMA_ADDR"), anyPort)))
		s.must(u.JoinMulticast(cmid.AddrFrom(netip.MustParseAddr("239.1.1.1"), anyPort)))
		await[*cmid.MulticastJoin](s, u)
	}
	s.resolved(l.LocalAddr())
	s.must(s.create(cmid.PortSpaceTCP).ResolveAddr(cmid.Addr{}, cmid.AddrFrom(addr(s.T, "RDMA_NOARP_ADDR"), 1), time.Minute))
	s.connect(l.LocalAddr())
	s.request()
	s.connect(cmid.AddrFrom(addr(s.T, "RDMA_SILENT_ADDR"), 1))
	s.connect(l.LocalAddr())
	say("at", l.LocalAddr())
}

// A killed process leaves nothing in the kernel, and its port is free.
func TestFaultKilledLeavesNothing(t *testing.T) {
	leavesNothing(t)
	before := kernelHas(t)
	p := startProcess(t, "everything")
	at := cmid.Addr{AddrPort: netip.MustParseAddrPort(p.hears("at"))}
	if has := kernelHas(t); has["cm_id"] < before["cm_id"]+15 || has["qp"] < before["qp"]+13 {
		t.Fatalf("rdma(8) does not show what the process has: %v, and before %v", has, before)
	}
	begin := time.Now()
	p.patience = 30 * time.Second // siw: 10 s for the request that is not answered
	p.kill()
	wantKernelHas(t, before)
	t.Logf("kill -9 and the end of all it had: %v", time.Since(begin))
	s := newSide(t)
	defer s.close()
	id := s.create(cmid.PortSpaceTCP)
	s.must(id.BindAddr(at))
	s.must(id.Listen(0))
}
