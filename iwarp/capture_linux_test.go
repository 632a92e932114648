package iwarp

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/hostile"
	"github.com/rdmactor/rdmactor/internal/iwarp/wire"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// exchanges are exchanges between a client and a server, whose devices are both captured.
var exchanges = map[string]func(t testing.TB, client, server *node){
	"messages": func(t testing.TB, client, server *node) {
		p := connect(t, client, server, 100)
		for i := range 100 {
			p.cq.send(uint64(i), strings.Repeat("m", i*i%4000))
			p.sq.send(uint64(i), strings.Repeat("n", i%100))
		}
		turns(t, "messages", func() bool { return len(client.wcs) == 200 && len(server.wcs) == 200 }, client, server)
		p.disconnect()
	},
	"IPv6": func(t testing.TB, client, server *node) {
		lh, addr := server.listen("[::1]:0")
		p := connectTo(t, client, server, lh, addr, 4)
		p.cq.send(1, "over IPv6")
		turns(t, "a message", func() bool { return len(client.wcs) == 1 && len(server.wcs) == 1 }, client, server)
		p.disconnect()
	},
	"one-sided": func(t testing.TB, client, server *node) {
		p := connect(t, client, server, 1)
		p.oneSided(1<<20, 2)
		p.disconnect()
	},
	"several connections": func(t testing.TB, client, server *node) {
		lh, addr := server.listen("127.0.0.1:0")
		for i := range 5 {
			p := connectTo(t, client, server, lh, addr, 10)
			client.wcs, server.wcs = nil, nil
			p.cq.send(1, strings.Repeat("x", i))
			turns(t, "a message", func() bool { return len(client.wcs) == 1 && len(server.wcs) == 1 }, client, server)
			if i%2 == 0 { // the others go on until the device closes
				p.disconnect()
			}
		}
	},
	"a Terminate": func(t testing.TB, client, server *node) {
		p := connect(t, client, server, 1)
		mr := client.alloc(100, 0)
		p.cq.post(verbs.SendWR{Op: verbs.Write, SGL: []verbs.SGE{{MR: mr, Length: 100}}, RKey: 4711})
		client.wait(p.ch, states.KindDisconnected, server)
	},
	"a rejection": func(t testing.TB, client, server *node) {
		_, addr := server.listen("127.0.0.1:0")
		h := client.resolve(addr)
		client.qp(h, 1)
		client.do(h, &cmid.Connect{})
		turns(t, "request", func() bool { return len(server.events) > 0 }, client, server)
		server.do(server.events[0].child, &cmid.Reject{PrivateData: []byte("no")})
		client.wait(h, states.KindRejected, server)
	},
	"a demand for markers": func(t testing.TB, client, server *node) {
		_, addr := server.listen("127.0.0.1:0")
		r := rawDial(t, addr)
		r.write(frameOf(wire.Frame{Flags: wire.FlagMarkers, Revision: 1}))
		if f := r.frame(server); f.Flags&wire.FlagReject == 0 {
			t.Errorf("a demand for markers was answered by %+v", f)
		}
	},
	"a stranger": func(t testing.TB, client, server *node) {
		_, addr := server.listen("127.0.0.1:0")
		r := rawDial(t, addr)
		r.write([]byte("GET / HTTP/1.1\r\n\r\n"))
		turns(t, "the end", r.ended, server)
	},
	"a reset": func(t testing.TB, client, server *node) {
		lh, addr := server.listen("127.0.0.1:0")
		r := rawDial(t, addr)
		r.write(request("hello"))
		turns(t, "request", func() bool { return len(server.events) > 0 }, server)
		h := server.events[0].child
		server.qp(h, 1)
		server.do(h, &cmid.Accept{})
		r.frame(server)
		r.write(fpduOf(1, "a message"))
		turns(t, "a message", func() bool { return len(server.wcs) == 1 }, server)
		r.reset()
		server.wait(h, states.KindDisconnected)
		server.do(lh, &cmid.DestroyID{})
	},
	"a message behind the end": func(t testing.TB, client, server *node) {
		_, addr := server.listen("127.0.0.1:0")
		r := rawDial(t, addr)
		r.write(request("hello"))
		turns(t, "request", func() bool { return len(server.events) > 0 }, server)
		h := server.events[0].child
		server.qp(h, 1)
		server.do(h, &cmid.Accept{})
		r.frame(server)
		server.wait(h, states.KindEstablished)
		server.do(h, &cmid.DestroyID{})
		r.write(fpduOf(1, "nobody takes it"))
		turns(t, "the FIN", r.ended, server)
		r.close()
		turns(t, "the end", func() bool { return server.in.conns == 0 }, server)
	},
	"a second attempt with revision 1": func(t testing.TB, client, server *node) {
		l := rawListen(t)
		h := client.resolve(l.at)
		client.qp(h, 1)
		client.do(h, &cmid.Connect{})
		first := l.accept(client)
		first.frame(client)
		first.close()
		second := l.accept(client)
		second.frame(client)
		second.write(frameOf(wire.Frame{Reply: true, Revision: 1}))
		client.wait(h, states.KindEstablished)
		second.write(fpduOf(1, "a message"))
		turns(t, "a message", func() bool { return len(client.wcs) == 1 }, client)
		second.close()
		client.wait(h, states.KindDisconnected)
	},
}

func frameOf(f wire.Frame) []byte { return wire.AppendFrame(nil, &f) }

// fpduOf returns a Send.
func fpduOf(msn uint32, body string) []byte {
	h := wire.Header{Last: true, Opcode: wire.OpSend, MSN: msn}
	return wire.AppendFPDU(nil, &wire.FPDU{ULPDU: append(wire.AppendHeader(nil, &h), body...)})
}

// disconnect ends the connection from the client's side.
func (p *pair) disconnect() {
	p.client.t.Helper()
	p.client.do(p.ch, &cmid.Disconnect{})
	p.server.wait(p.sh, states.KindDisconnected, p.client)
	p.server.do(p.sh, &cmid.DestroyID{})
	p.client.wait(p.ch, states.KindDisconnected, p.server)
	p.client.do(p.ch, &cmid.DestroyID{})
}

// oneSided makes each side write and read that many bytes of the other's memory, several times.
func (p *pair) oneSided(size, times int) {
	p.client.t.Helper()
	all := verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead
	cm, sm := p.client.alloc(size, all), p.server.alloc(size, all)
	done := len(p.client.wcs) + len(p.server.wcs)
	for range times {
		for _, d := range []struct {
			q           *testQP
			here, there *verbs.MR
		}{{p.cq, cm, sm}, {p.sq, sm, cm}} {
			for _, op := range []verbs.Opcode{verbs.Write, verbs.Read} {
				d.q.post(verbs.SendWR{
					Op: op, Flags: verbs.Signaled, SGL: []verbs.SGE{{MR: d.here, Length: uint32(size)}},
					RemoteAddr: d.there.Addr, RKey: d.there.RKey,
				})
				done++
			}
		}
	}
	turns(p.client.t, "Writes and Reads", func() bool { return len(p.client.wcs)+len(p.server.wcs) == done }, p.client, p.server)
}

// eachExchange runs the exchanges with and without CRC, and calls judge for each file.
func eachExchange(t *testing.T, judge func(t *testing.T, x *captured)) {
	for name, run := range exchanges {
		for _, crc := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/CRC %t", name, crc), func(t *testing.T) {
				c, s := capturing(t, Config{CRC: crc}, roomy), capturing(t, Config{}, roomy)
				client, server := newNodeOf(t, c.drv), newNodeOf(t, s.drv)
				run(t, client, server)
				for _, n := range []*node{client, server} {
					if err := n.inst.Close(); err != nil {
						t.Error(err)
					}
				}
				for _, x := range []*captured{c, s} {
					x.t = t
					x.stop()
					judge(t, x)
				}
			})
		}
	}
}

// TestCapture: a file has exactly the bytes that the sockets have read and written, from the
// beginning to the end of each connection.
func TestCapture(t *testing.T) {
	eachExchange(t, func(t *testing.T, x *captured) {
		x.judge()
		resets := x.resets()
		if reset := strings.Contains(t.Name(), "a_reset") || strings.Contains(t.Name(), "second_attempt"); resets > 0 && !reset ||
			reset && len(x.read.Packets) > 0 && resets != 1 {
			t.Errorf("%d resets", resets)
		}
	})
}

// resets returns how many packets have the flag RST.
func (x *captured) resets() (n int) {
	const rst = 4
	for _, p := range x.read.Packets {
		if p.Flags&rst != 0 {
			n++
		}
	}
	return n
}

// TestCaptureHostile: regardless of a peer's bytes, the file contains exactly the bytes on the
// sockets, and the connections end as without a capture.
func TestCaptureHostile(t *testing.T) {
	c, s := capturing(t, Config{}, roomy), capturing(t, Config{}, roomy)
	a := newArenaOf(t, newNodeOf(t, c.drv), newNodeOf(t, s.drv), hostile.Receives, hostile.ReceiveLen)
	for _, x := range hostile.All() {
		for _, side := range sides(x) {
			if !x.Slow {
				a.judge(x, a.attack(x, side, hostile.Options{}))
			}
		}
	}
	for _, n := range []*node{a.client, a.server} {
		if err := n.inst.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, x := range []*captured{c, s} {
		x.stop()
		x.judge()
		if n := x.Stats().Connections; n < 50 {
			t.Errorf("only %d connections", n)
		}
	}
}

// roomy has room for all packets of an exchange, however slow the machine is.
var roomy = CaptureConfig{Memory: 32 << 20}

// BenchmarkCapturedPingPong is BenchmarkPingPong with a capture at one end.
func BenchmarkCapturedPingPong(b *testing.B) {
	x := recording(b, Config{})
	x.drv = New()
	x.start(CaptureConfig{Writer: io.Discard, MaxBytes: 1 << 60})
	pp := newPingPongOf(b, newNodeOf(b, x.drv))
	b.ReportAllocs()
	for b.Loop() {
		pp.round()
	}
	if err := x.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
	if s := x.Stats(); s.Packets < uint64(b.N) {
		b.Errorf("%+v", s)
	}
}

// BenchmarkCapturedWrite is a Write of 1 MiB, with a capture at one end and without.
func BenchmarkCapturedWrite(b *testing.B) {
	for _, captured := range []bool{false, true} {
		b.Run(fmt.Sprintf("captured=%t", captured), func(b *testing.B) {
			x := recording(b, Config{})
			x.drv = New()
			if captured {
				x.start(CaptureConfig{Writer: io.Discard, MaxBytes: 1 << 60})
			}
			client, server := newNodeOf(b, x.drv), newNode(b)
			p := connect(b, client, server, 1)
			cm, sm := client.alloc(1<<20, anyAccess), server.alloc(1<<20, anyAccess)
			b.SetBytes(1 << 20)
			for b.Loop() {
				client.wcs = client.wcs[:0]
				p.cq.post(verbs.SendWR{Op: verbs.Write, SGL: whole(cm), RemoteAddr: sm.Addr, RKey: sm.RKey})
				client.completed(1, server)
			}
			if !captured {
				return
			}
			if err := x.Stop(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(x.Stats().Dropped)/float64(b.N), "dropped/op")
		})
	}
}
