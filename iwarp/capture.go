package iwarp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/iwarp/pcapng"
)

// CaptureConfig selects the connections of a Capture, and its destination. Fields that are not set,
// or not positive, are the defaults named here.
type CaptureConfig struct {
	// Writer receives the file, in pieces of up to Memory bytes, on a goroutine of the Capture. It
	// may block: packets that find no room in Memory are dropped and counted. If it fails, panics
	// or ends its goroutine, the capture is over.
	Writer io.Writer
	// Local and Peer select connections by the addresses of their two ends: every address. An IPv4
	// connection has IPv4 addresses, also at a listener on ::.
	Local, Peer netip.Prefix
	// LocalPort and PeerPort select connections by their ports: every port.
	LocalPort, PeerPort uint16
	// MaxBytes limits the file: 1 GiB. The capture ends before the first packet that would exceed
	// it.
	MaxBytes int64
	// Memory is the size of each of the capture's two buffers for packets: 8 MiB. While the Writer
	// has one, packets go to the other. At least 256 KiB.
	Memory int
}

// The descriptions in a file, and the limits of a Capture that no CaptureConfig changes.
const (
	captureProgram = "rdmactor, package iwarp"
	captureRemark  = "The bytes are those that the embedded iWARP device has read from its sockets and written to them. " +
		"The IP and TCP headers are made up: numbers count these bytes, and acknowledgements say that they came."
	captureAbout = "TCP streams of the embedded iWARP device, with IP and TCP headers that are made up"
	// captureLeast is the least memory of a capture: a few of the largest packets.
	captureLeast = 256 << 10
	// captureBeginning is an upper limit for the beginning of a connection: a handshake, synthetic
	// MPA frames, the beginnings of FPDUs.
	captureBeginning = 4 << 10
)

// CaptureStats counts the activities of a Capture.
type CaptureStats struct {
	Connections int    // selected connections
	Packets     uint64 // in the file, or on their way there
	// Dropped counts the packets that found no room. The rest of the same system call, and
	// everything up to the next whole FPDU, is omitted, too. A connection that begins without room
	// is included as soon as there is room.
	Dropped uint64
	Bytes   int64 // of the file
}

// Capture writes the traffic of a device's selected connections to a file that Wireshark reads
// (pcapng), until it is stopped, its file reaches MaxBytes, or its Writer fails. Any goroutine may
// call its methods. The file contains everything that was on the wire: messages, private data, keys
// of granted memory. Protecting it is the responsibility of the Writer's creator.
//
// It copies the bytes that a connection's system calls have read and written, and never waits. The
// IP and TCP headers are synthetic, because a process does not see the real ones. So is a handshake
// at the beginning of each connection, and, if the connection was set up before the capture
// started, an MPA Request and Reply without private data: without these Wireshark could not
// identify the protocol. For such a connection, and after dropped packets, the capture begins with
// a whole FPDU. Comments in the file mark synthetic parts, and name the rdma_cm_id.
//
// If both ends of a connection are connections of the same device, the file contains it once, as
// seen by the end that has read or written first.
type Capture struct {
	drv  *Driver
	cfg  CaptureConfig
	wake chan struct{} // there are blocks, or the capture is over
	done chan struct{} // closed when the Writer is no longer used

	mu      sync.Mutex
	over    bool
	err     error // of the Writer
	blocks  []byte
	spare   []byte // nil while the Writer has it
	begun   time.Time
	ended   time.Time
	stats   CaptureStats
	present map[endpoints]struct{} // connections that are being captured
}

// endpoints are a connection's addresses.
type endpoints struct{ local, peer netip.AddrPort }

// errCaptureRuns is the error of a second capture of a device.
var errCaptureRuns = fmt.Errorf("iwarp: a capture of this device runs already: %w", unix.EBUSY)

// StartCapture begins a capture of this device's connections, existing and future ones, on all
// loops on which it is opened. It fails with EINVAL if c is not valid, and with EBUSY if a capture
// of this device is running. A capture that is started before the device is opened misses nothing.
// Any goroutine may call it.
func (d *Driver) StartCapture(c CaptureConfig) (*Capture, error) {
	if c.Writer == nil {
		return nil, fmt.Errorf("iwarp: a capture without a Writer: %w", unix.EINVAL)
	}
	c.MaxBytes = positiveOr(c.MaxBytes, 1<<30)
	c.Memory = max(positiveOr(c.Memory, 8<<20), captureLeast)
	c.Local, c.Peer = c.Local.Masked(), c.Peer.Masked()
	p := &Capture{
		drv: d, cfg: c, wake: make(chan struct{}, 1), done: make(chan struct{}),
		blocks: make([]byte, 0, c.Memory), spare: make([]byte, 0, c.Memory),
		begun: time.Now(), present: make(map[endpoints]struct{}),
	}
	p.blocks = pcapng.AppendSection(p.blocks, captureProgram, captureRemark)
	p.blocks = pcapng.AppendInterface(p.blocks, d.cfg.Device, captureAbout)
	p.stats.Bytes = int64(len(p.blocks))
	if !d.capture.CompareAndSwap(nil, p) {
		return nil, errCaptureRuns
	}
	go p.runWriter()
	p.wakeWriter()
	return p, nil
}

// Stop ends the capture and waits until its Writer has everything, or until ctx is done. It returns
// the error of the Writer, if there was one. Afterwards the Writer is no longer used, unless ctx
// was done first. Stop may be called any number of times, also to wait for the end of a capture
// that is over.
func (p *Capture) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.closeLocked()
	p.mu.Unlock()
	select {
	case <-p.done:
	case <-ctx.Done():
		select {
		case <-p.done: // both are done
		default:
			return fmt.Errorf("iwarp: the capture's Writer has not returned: %w", context.Cause(ctx))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Done is closed when the capture has ended, for whatever reason, and its Writer is no longer used.
// Stop then returns immediately.
func (p *Capture) Done() <-chan struct{} { return p.done }

// Stats returns the counts so far.
func (p *Capture) Stats() CaptureStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// closeLocked ends the capture for the loops. The caller holds the lock.
func (p *Capture) closeLocked() {
	if p.over {
		return
	}
	p.over, p.ended = true, time.Now()
	p.drv.capture.CompareAndSwap(p, nil)
	p.wakeWriter()
}

func (p *Capture) wakeWriter() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// runWriter passes all blocks to the Writer until the capture is over.
func (p *Capture) runWriter() {
	defer close(p.done)
	defer p.writerDone(errors.New("iwarp: the capture's Writer has ended its goroutine"))
	for range p.wake {
		for {
			b, last := p.takeBlocks()
			if len(b) > 0 {
				if err := p.callWriter(b); err != nil {
					p.writerDone(err)
					return
				}
			}
			if last {
				p.writerDone(nil)
				return
			}
			if len(b) == 0 {
				break
			}
		}
	}
}

// takeBlocks returns the blocks that the Writer has not received. last: there will be no more.
func (p *Capture) takeBlocks() (b []byte, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b = p.blocks
	if p.over {
		p.blocks = nil
		p.stats.Bytes += pcapng.StatisticsLen
		return pcapng.AppendStatistics(b, pcapng.Statistics{
			Start: p.begun, End: p.ended, Written: p.stats.Packets, Dropped: p.stats.Dropped,
		}), true
	}
	if len(b) > 0 {
		p.blocks, p.spare = p.spare[:0], b
	}
	return b, false
}

// callWriter calls the Writer.
func (p *Capture) callWriter(b []byte) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("iwarp: the capture's Writer panicked: %v", v)
		}
	}()
	n, err := p.cfg.Writer.Write(b)
	switch {
	case err != nil:
		return fmt.Errorf("iwarp: the capture's Writer: %w", err)
	case n != len(b):
		return fmt.Errorf("iwarp: the capture's Writer: %w", io.ErrShortWrite)
	}
	return nil
}

// writerDone records how the writing has ended. Only the first call counts.
func (p *Capture) writerDone(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.present == nil {
		return
	}
	p.closeLocked()
	p.err = err
	p.blocks, p.spare, p.present = nil, nil, nil
}

// includesConn reports whether the capture includes connections with these addresses.
func (p *Capture) includesConn(e endpoints) bool {
	in := func(want netip.Prefix, port uint16, has netip.AddrPort) bool {
		return (!want.IsValid() || want.Contains(has.Addr())) && cmp.Or(port, has.Port()) == has.Port()
	}
	return in(p.cfg.Local, p.cfg.LocalPort, e.local) && in(p.cfg.Peer, p.cfg.PeerPort, e.peer)
}

// addConn counts a connection. n distinguishes it from all others of the capture; 0: it cannot
// join, because the capture is over or contains the other end already, or because there is no room
// now (full).
func (p *Capture) addConn(e endpoints) (n int, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, other := p.present[endpoints{e.peer, e.local}]; p.over || other {
		return 0, false
	}
	if len(p.blocks)+captureBeginning > p.cfg.Memory {
		p.stats.Dropped++
		return 0, true
	}
	p.present[e] = struct{}{}
	p.stats.Connections++
	return p.stats.Connections, false
}

// removeConn removes a connection that has ended.
func (p *Capture) removeConn(e endpoints) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.present, e)
}

// addPacket adds a packet with n bytes of payload. The result is false if it was dropped.
func (p *Capture) addPacket(packet *pcapng.Packet, n int, payload [][]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	most := pcapng.PacketLen(n, packet.Comment)
	switch {
	case p.stats.Bytes+int64(most)+pcapng.StatisticsLen > p.cfg.MaxBytes:
		p.stats.Dropped++
		p.closeLocked()
		return false
	case len(p.blocks)+most+pcapng.StatisticsLen > p.cfg.Memory: // so that takeBlocks need not copy
		p.stats.Dropped++
		return false
	}
	before := len(p.blocks)
	p.blocks = pcapng.AppendPacket(p.blocks, packet, payload...)
	p.stats.Packets++
	p.stats.Bytes += int64(len(p.blocks) - before)
	if before == 0 {
		p.wakeWriter()
	}
	return true
}

// addrPort returns an address as in IP and TCP headers.
func addrPort(a cmid.Addr) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
