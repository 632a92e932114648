package iwarp

import (
	"time"

	"github.com/rdmactor/rdmactor/eventloop"
)

// socketPhase is the state of a conn's socket.
type socketPhase uint8

const (
	phIdle       socketPhase = iota // no socket yet: a queue pair was made before Connect
	phConnecting                    // TCP's three-way handshake
	phRunning                       // the core uses the socket
	// the core is done and the FIN was sent; later input is discarded up to the peer's FIN
	phDiscarding
	phClosed // the socket is closed
)

// socket is a conn's TCP socket, and what the loop watches it for.
type socket struct {
	fd   int // negative: none
	reg  *eventloop.Registration
	loss *loss // nil: the socket works

	came, went uint64 // bytes read and written

	phase     socketPhase
	waits     bool // a message waits for a receive: nothing is read
	blocked   bool // the socket is full and must become writable, or it is lost
	watched   bool // the loop watches for writability
	shut      bool // FIN is sent, or will be by the kernel
	unguarded bool // a connecting side's, without the options of setLossOptions
}

// isRunning reports whether the core may read and write the socket.
func (s *socket) isRunning() bool { return s.phase == phRunning }

// events returns the events for which the loop watches the socket.
func (s *socket) events() (ev eventloop.Events) {
	if !s.waits {
		ev = eventloop.Readable
	}
	if s.watched {
		ev |= eventloop.Writable
	}
	return ev
}

// timer is a conn's only timer.
type timer struct {
	t  *eventloop.Timer // nil: not made, or released
	at time.Time        // when it fires; zero: it is not armed
}

// arm makes c.handleTimeout be called at the given time. An earlier one stays: handleTimeout then
// arms it again.
func (t *timer) arm(c *conn, now, at time.Time) {
	if t.t == nil {
		t.t = c.in.loop.NewTimer(c.handleTimeout)
	}
	if t.at.IsZero() || at.Before(t.at) {
		t.t.Reset(at.Sub(now))
		t.at = at
	}
}

// stop disarms the timer.
func (t *timer) stop() {
	if t.t != nil {
		t.t.Stop()
		t.at = time.Time{}
	}
}

// release stops the timer, and frees it.
func (t *timer) release() {
	t.stop()
	t.t = nil
}
