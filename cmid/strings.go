package cmid

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Events in one line each, for logs. Addresses are written as failures write them: this side ->
// the other, whichever of them has connected.

// String is one line.
func (e *Bound) String() string {
	return "bound" + addrText(e.Local) + e.idAndStatus() + onDevice(e.Device)
}

// String is one line.
func (e *Listening) String() string {
	return fmt.Sprintf("listening%s%s, backlog %d", addrText(e.Local), e.idAndStatus(), e.Backlog)
}

// String is one line.
func (e *AddrResolved) String() string {
	return "address resolved" + addrsText(e.Local, e.Peer) + e.idAndStatus() + onDevice(e.Device)
}

// String is one line.
func (e *RouteResolved) String() string { return "route resolved" + e.idAndStatus() }

// String is one line.
func (e *ConnectRequest) String() string {
	return fmt.Sprintf("connect request%s%s on listener %d%s", addrsText(e.Local, e.Peer), e.idAndStatus(), e.Listener, privateDataText(e.PrivateData))
}

// String is one line.
func (e *ConnectResponse) String() string {
	return "connect response" + e.idAndStatus() + privateDataText(e.PrivateData)
}

// String is one line.
func (e *Established) String() string {
	s := "established" + addrsText(e.Local, e.Peer) + e.idAndStatus() + privateDataText(e.PrivateData)
	if e.MaxMessage > 0 {
		s += fmt.Sprintf(", messages up to %d bytes", e.MaxMessage)
	}
	if e.Fallback != nil {
		s += ", fallback after: " + e.Fallback.Error()
	}
	return s
}

// String is one line.
func (e *Disconnected) String() string { return "disconnected" + e.idAndStatus() + causeText(e.Err) }

// String is one line.
func (e *DeviceRemoval) String() string {
	return "device removal" + e.idAndStatus() + onDevice(e.Device)
}

// String is one line.
func (e *MulticastJoin) String() string {
	return fmt.Sprintf("multicast join%s%s, qpn %#x, qkey %#x", addrText(e.Addr), e.idAndStatus(), e.UD.QPN, e.UD.QKey)
}

// String is one line.
func (e *AddrChange) String() string { return "address change" + e.idAndStatus() }

// String is one line.
func (e *NeighbourChanged) String() string { return "neighbour changed" + e.idAndStatus() }

// String is one line.
func (e *TimewaitExit) String() string { return "timewait exit" + e.idAndStatus() }

// String is one line.
func (e *AddrInfoResolved) String() string {
	s := "addrinfo resolved" + e.idAndStatus()
	for i, ai := range e.Info {
		s += [...]string{": ", ", "}[min(i, 1)] + strings.TrimSpace(addrsText(ai.Src, ai.Dst))
	}
	return s
}

// String is one line.
func (e *User) String() string { return fmt.Sprintf("user event %#x%s", e.Arg, e.idAndStatus()) }

// String is one line.
func (e *Internal) String() string {
	return fmt.Sprintf("internal event %#x%s", e.Arg, e.idAndStatus())
}

// String is one line.
func (e *Done) String() string {
	if e.Command == nil {
		return "done" + e.idAndStatus()
	}
	name := fmt.Sprintf("%T", e.Command)
	return "done " + name[strings.LastIndexByte(name, '.')+1:] + e.idAndStatus()
}

// String is one line.
func (e *QPFailed) String() string { return "queue pair failed" + e.idAndStatus() }

// String is one line.
func (e *Closed) String() string {
	s := "closed" + e.idAndStatus()
	if e.Delivered+e.Unsent+e.Unknown > 0 {
		s += fmt.Sprintf(", messages: %d delivered, %d unsent, %d unknown", e.Delivered, e.Unsent, e.Unknown)
	}
	return s + causeText(e.Err)
}

// idAndStatus returns the identifier and, unless it is 0, the kernel's status.
func (e *EventBase) idAndStatus() string {
	if e.Status != 0 {
		return fmt.Sprintf(" (id %d, status %d)", e.ID, e.Status)
	}
	return fmt.Sprintf(" (id %d)", e.ID)
}

func addrText(a Addr) string {
	if a.IsZero() {
		return ""
	}
	return " " + a.String()
}

// addrsText returns the known addresses of both ends.
func addrsText(local, peer Addr) string {
	if peer.IsZero() {
		return addrText(local)
	}
	return addrText(local) + " -> " + peer.String()
}

func onDevice(name string) string {
	if name == "" {
		return ""
	}
	return ", device " + name
}

func privateDataText(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	return fmt.Sprintf(", %d bytes of private data", len(data))
}

// reasonText returns the reason from the private data of a peer's application. Text is quoted, so
// that it cannot be mistaken for this package's own words.
func reasonText(data []byte) string {
	data = bytes.TrimRight(data, "\x00") // InfiniBand pads
	switch {
	case len(data) == 0:
		return ""
	case utf8.Valid(data) && !bytes.ContainsFunc(data, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Sprintf("; the peer says %q", data)
	}
	return privateDataText(data)
}

func causeText(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
