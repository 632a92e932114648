//go:build linux && rdma

package ucm_test

import (
	"encoding/binary"
	"hash/crc32"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
)

// Requests with the address of a missing host as their source: the kernel looks for that address
// for a second, when the accepting queue pair is made ready. Nothing else is delayed: neither a
// connection on the same loop, nor later requests.
func TestFaultForgedRequests(t *testing.T) {
	if env(t, "RDMA_KIND") != "rxe" {
		t.Log("iWARP's requests come over TCP: their sender is there")
		return
	}
	leavesNothing(t)
	s, far := newSide(t), newSide(t)
	defer far.close()
	defer s.close()
	l := s.listen("RDMA_ADDR", 0)
	a, b := pair(s, s, l)
	longest := func(do func()) time.Duration {
		begin := time.Now()
		do()
		s.talks(a, b)
		return time.Since(begin)
	}
	before := longest(func() {})

	const n = 10
	forger := newForger(t, l.LocalAddr().AddrPort)
	for i := range n {
		forger.request(uint32(i+1), stranger(i))
	}
	var forged []*conn
	var took []time.Duration
	for range n {
		c := s.request()
		forged = append(forged, c)
		took = append(took, longest(func() {
			if err := c.id.Accept(nil, nil); err != nil {
				t.Log(err)
			}
		}))
	}
	t.Logf("pings have taken %v, and %v when a forged request was accepted", before, took)
	slices.Sort(took) // each would take the second, and an emulated machine may be slow once
	if median := took[n/2]; median > before+time.Second/2 {
		t.Errorf("accepting a forged request has delayed others for %v", median)
	}

	begin := time.Now()
	honest := far.connect(l.LocalAddr())
	var accepted *conn
	for accepted == nil || s.of(accepted.id.Handle()) != "ConnectRequest Established" {
		far.turn(time.Millisecond)
		s.turn(time.Millisecond)
		for _, e := range s.delivered {
			if r, ok := e.ev.(*cmid.ConnectRequest); ok && !e.taken {
				e.taken = true
				accepted = s.queues(s.ch.ID(r.ID))
				s.must(accepted.id.Accept(nil, nil))
			}
		}
		if time.Since(begin) > faultPatience {
			t.Fatalf("an honest request behind forged ones is not accepted; got %s", s.all())
		}
	}
	await[*cmid.Established](far, honest.id)
	t.Logf("an honest request behind them was accepted after %v", time.Since(begin))
	for _, c := range forged {
		await[*cmid.CommandFailed](s, c.id)
		s.destroy(c.id)
	}
	s.talks(a, b)
}

// A host that dies with packets under way to it: only the destruction of the queue pair waits for
// them in the kernel.
func TestFaultDestroyWaitsForPackets(t *testing.T) {
	if env(t, "RDMA_KIND") != "rxe" {
		t.Log("iWARP's packets are TCP's")
		return
	}
	leavesNothing(t)
	s := newSide(t)
	defer s.close()
	l := s.listen("RDMA_ADDR", 0)
	a, b := pair(s, s, l)
	s.talks(a, b)
	silent := addr(t, "RDMA_SILENT_ADDR")
	newForger(t, l.LocalAddr().AddrPort).request(100, silent)
	c := s.request()
	s.must(c.id.Accept(nil, nil))
	s.until("its queue pair to be ready", func() bool { c.talk(1); return c.issued == 1 })
	command(t, "ip", "neigh", "del", silent.String(), "dev", env(t, "RDMA_NETDEV"))
	defer command(t, "ip", "neigh", "replace", silent.String(), "lladdr", silentMAC(t), "nud", "permanent", "dev", env(t, "RDMA_NETDEV"))
	c.talk(slots)
	s.quiet()
	begin := time.Now()
	s.must(c.id.Destroy())
	s.talks(a, b)
	took := time.Since(begin)
	s.until("the end of destroy_id", func() bool { return s.ch.ID(c.id.Handle()) == nil })
	t.Logf("others have gone on after %v, and the kernel has let go after %v", took, time.Since(begin))
	if took > time.Second {
		t.Errorf("the destruction has delayed others for %v", took)
	}
}

// stranger returns an unused address of the machine's network.
func stranger(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 10, 1, byte(200 + i)}) }

// forger sends RoCE v2 packets from the other end of the cable.
type forger struct {
	*testing.T
	fd   int
	to   netip.AddrPort
	from netip.Addr // of the packets: the kernel looks for that, too
	mac  net.HardwareAddr
}

func newForger(t *testing.T, to netip.AddrPort) *forger {
	t.Helper()
	near, err := net.InterfaceByName(env(t, "RDMA_NETDEV"))
	if err != nil {
		t.Fatal(err)
	}
	wire, err := net.InterfaceByName(peerOf(t))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: wire.Index})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return &forger{T: t, fd: fd, to: to, from: addr(t, "RDMA_SILENT_ADDR"), mac: near.HardwareAddr}
}

// request sends a REQ of rdma_cm's with who as its source.
func (f *forger) request(number uint32, who netip.Addr) {
	f.Helper()
	e := binary.BigEndian
	const mad, data = 256, 140
	m := make([]byte, mad)
	copy(m, []byte{1, 7, 2, 3}) // version 1, communication management, version 2, Send
	e.PutUint64(m[8:], uint64(number)<<32|0xf04)
	e.PutUint16(m[16:], 0x10) // REQ
	r := m[24:]
	e.PutUint32(r, 0xf0000000|number) // the connection's number
	e.PutUint64(r[8:], 0x0106<<16|uint64(f.to.Port()))
	e.PutUint64(r[16:], 0xf0f0f0f0<<32|uint64(number)) // the adapter
	// the queue pair, and the Reads that it serves
	e.PutUint32(r[32:], (0x4000+number)<<8|1)
	e.PutUint32(r[36:], 1)              // and asks
	e.PutUint32(r[40:], 20<<3)          // answer within 4 s; reliable, connected
	e.PutUint32(r[44:], 100<<8|20<<3|7) // packets begin with 100
	e.PutUint16(r[48:], 0xffff)         // the partition
	r[50], r[51] = 3<<4|7, 15<<4        // 1024 bytes
	e.PutUint16(r[52:], 0xffff)
	e.PutUint16(r[54:], 0xffff)
	local, remote := who.As16(), f.to.Addr().As16()
	copy(r[56:], local[:])
	copy(r[72:], remote[:])
	r[91] = 3
	r[93], r[94], r[95] = 64, 1<<3, 14<<3
	h := r[data:] // rdma_cm's
	h[1] = 4 << 4
	e.PutUint16(h[2:], uint16(number))
	copy(h[16:], local[12:])
	copy(h[32:], remote[12:])
	f.send(number, m)
}

// send sends a datagram to the queue pair of the management.
func (f *forger) send(psn uint32, payload []byte) {
	f.Helper()
	e := binary.BigEndian
	const ip, udp, bth, deth, crc = 20, 8, 12, 8, 4
	p := make([]byte, ip+udp+bth+deth, ip+udp+bth+deth+len(payload)+crc)
	total := cap(p)
	p[0], p[8], p[9] = 0x45, 64, 17
	e.PutUint16(p[2:], uint16(total))
	e.PutUint16(p[6:], 0x4000)
	from, to := f.from.As4(), f.to.Addr().As4()
	copy(p[12:], from[:])
	copy(p[16:], to[:])
	e.PutUint16(p[20:], 49152)
	e.PutUint16(p[22:], 4791)
	e.PutUint16(p[24:], uint16(total-ip))
	b := p[ip+udp:]
	b[0] = 0x64 // UD, SEND only
	e.PutUint16(b[2:], 0xffff)
	e.PutUint32(b[4:], 1)
	e.PutUint32(b[8:], psn)
	e.PutUint32(b[12:], 0x80010000)
	e.PutUint32(b[16:], 1)
	p = append(p, payload...)
	// The checksum leaves out what changes on the way.
	masked := append([]byte{255, 255, 255, 255, 255, 255, 255, 255}, p...)
	for _, i := range []int{1, 8, 10, 11, 26, 27, ip + udp + 4} {
		masked[8+i] = 0xff
	}
	p = binary.LittleEndian.AppendUint32(p, crc32.ChecksumIEEE(masked))
	var sum uint32
	for i := 0; i < ip; i += 2 {
		sum += uint32(e.Uint16(p[i:]))
	}
	e.PutUint16(p[10:], ^uint16(sum>>16+sum&0xffff))
	frame := append(append(append([]byte{}, f.mac...), 2, 0, 0, 0, 1, 1), 8, 0)
	if _, err := unix.Write(f.fd, append(frame, p...)); err != nil {
		f.Fatal(err)
	}
}
