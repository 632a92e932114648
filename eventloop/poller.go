package eventloop

import (
	"strings"
	"time"
)

// Events is a set of readiness bits, with the values of epoll's.
type Events uint32

// The readiness bits. Readable and Writable are asked for; Hangup and Error are reported whether
// asked for or not.
const (
	Readable Events = 0x01 // EPOLLIN: a read would not block, the end of the stream included
	Writable Events = 0x04 // EPOLLOUT: a write would not block
	Hangup   Events = 0x10 // EPOLLHUP: both directions are shut
	// EPOLLERR: an error is pending (SO_ERROR), or the reading end of a pipe is gone
	Error Events = 0x08
)

var eventNames = [...]struct {
	bit  Events
	name string
}{{Readable, "readable"}, {Writable, "writable"}, {Hangup, "hangup"}, {Error, "error"}}

// String names the bits: "readable|hangup".
func (ev Events) String() string {
	if ev == 0 {
		return "none"
	}
	var names []string
	for _, e := range eventNames {
		if ev&e.bit != 0 {
			names = append(names, e.name)
		}
	}
	return strings.Join(names, "|")
}

// MarshalText returns String's text.
func (ev Events) MarshalText() ([]byte, error) { return []byte(ev.String()), nil }

// Ready is one report of a [Poller]: the tag that the fd was added with, and its events.
type Ready struct {
	Tag    uint64
	Events Events
}

// Poller is the kernel's side of a loop: epoll, or a scripted fake. Add, Modify, Remove, Wait and
// Close are called on the loop's goroutine (or before it runs); Wake by anybody. Readiness is
// level-triggered. Errors are errnos, wrapped or bare.
type Poller interface {
	// Add watches fd for ev and reports it with tag. EEXIST when fd is watched already, EBADF when
	// it is not open, EPERM for a file that cannot be polled.
	Add(fd int, ev Events, tag uint64) error
	// Modify changes the events that a watched fd is watched for. ENOENT when it is not watched.
	Modify(fd int, ev Events, tag uint64) error
	// Remove stops watching fd. Reports already taken from the kernel may still name its tag.
	Remove(fd int) error
	// Wait fills dst with reports. When nothing is ready it blocks for up to timeout: 0 does not
	// block, a negative timeout blocks forever. It returns early, with 0, after a Wake. EINTR is
	// passed on.
	Wait(dst []Ready, timeout time.Duration) (int, error)
	// Wake ends the current Wait, or the next one when none is under way. After Close it does
	// nothing.
	Wake() error
	// Close releases the Poller's descriptors and memory.
	Close() error
}

// Clock gives a loop the time. It must never run backwards; the wall clock's times carry Go's
// monotonic reading. Now is called by any goroutine.
type Clock interface {
	Now() time.Time
}

// embedder is a Poller that can be waited for from outside.
type embedder interface {
	// embedFD returns an fd that is readable when Wait would report something, when Wake was
	// called, and when the time set by armTimer is reached.
	embedFD() (int, error)
	// armTimer sets that time, relative to now; negative means never.
	armTimer(d time.Duration) error
}
