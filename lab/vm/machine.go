package vm

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/rdmactor/rdmactor/lab/vm/wire"
)

// Machine is a running guest.
type Machine struct {
	// BootTime is the time from QEMU's start until the devices were active.
	BootTime time.Duration
	// Release is the kernel's release, as in uname -r.
	Release string

	dir       string
	forwarded map[int]int
	qemu      *exec.Cmd
	said      syncBuffer
	ready     chan struct{}
	dead      chan struct{} // closed when QEMU has ended

	writing  sync.Mutex
	mu       sync.Mutex
	conn     net.Conn
	closed   bool
	last     uint32
	commands map[uint32]*Command
}

// ErrDied is wrapped by every error caused by the machine's end.
var ErrDied = errors.New("the VM died")

func newMachine(image *Image, dir string, forwarded map[int]int) *Machine {
	return &Machine{
		Release: image.Release, dir: dir, forwarded: forwarded,
		ready: make(chan struct{}), dead: make(chan struct{}), commands: map[uint32]*Command{},
	}
}

// Forwarded returns the address on this machine that leads to guestPort, a port in Config.Forward.
func (m *Machine) Forwarded(guestPort int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(m.forwarded[guestPort]))
}

// Wait waits until the machine has ended.
func (m *Machine) Wait() { <-m.dead }

// Close ends the machine immediately, like a power cut.
func (m *Machine) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.killQEMU()
	return os.RemoveAll(m.dir)
}

func (m *Machine) killQEMU() {
	_ = m.qemu.Process.Kill() // fails if QEMU has ended
	<-m.dead
}

func (m *Machine) awaitQEMU() {
	_ = m.qemu.Wait()
	close(m.dead)
}

// serveQEMU accepts QEMU's connection, and delivers frames to their commands until it ends.
func (m *Machine) serveQEMU(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return // the boot has failed
	}
	defer conn.Close()
	m.mu.Lock()
	m.conn = conn
	m.mu.Unlock()
	for {
		f, err := wire.Read(conn)
		if err != nil {
			return
		}
		if f.Kind == wire.Ready {
			close(m.ready)
			continue
		}
		m.mu.Lock()
		c := m.commands[f.Command]
		if f.Kind == wire.Exit {
			delete(m.commands, f.Command)
		}
		m.mu.Unlock()
		if c != nil {
			c.handleFrame(f)
		}
	}
}

func (m *Machine) sendFrame(f wire.Frame) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	return wire.Write(m.conn, f)
}

// deathError returns the error of every command that runs when QEMU ends.
func (m *Machine) deathError() error {
	m.mu.Lock()
	closed := m.closed
	m.mu.Unlock()
	if closed {
		return fmt.Errorf("%w: it was closed", ErrDied)
	}
	return fmt.Errorf("%w\n%sconsole:\n%s", ErrDied, m.said.String(), m.consoleTail())
}

// consoleTail returns the end of the console's output. It is long enough for an oops with its
// registers and stack.
func (m *Machine) consoleTail() string {
	b, err := os.ReadFile(filepath.Join(m.dir, "console"))
	if err != nil {
		return err.Error()
	}
	return lastLines(string(bytes.ReplaceAll(b, []byte("\r"), nil)), 8000)
}

// syncBuffer is a bytes.Buffer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
