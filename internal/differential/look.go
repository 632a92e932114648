package differential

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// seen has what a turn has shown, by subject: "answer 1", "events a", "state c1", "local a".
type seen map[string]string

func (s seen) equal(o seen) bool { return maps.Equal(s, o) }

// look returns the state of all identifiers, and this turn's events and answers.
func (w *world) look() seen {
	out := make(seen)
	for _, name := range w.order {
		w.portNames(w.slots[name])
	}
	for name, s := range w.slots {
		for _, a := range s.asked {
			out[fmt.Sprintf("answer %d", a.n)] = a.answer
		}
		if len(s.events) > 0 {
			out["events "+name] = strings.Join(s.events, ", ")
		}
		if len(s.params) > 0 {
			out["params "+name] = strings.Join(s.params, ", ")
		}
		if !s.alive() {
			continue
		}
		in := s.id.Info()
		out["state "+name] = s.id.State().String()
		out["local "+name], out["peer "+name] = w.address(in.Local), w.address(in.Peer)
		if s.id.Flavor()&states.Device != 0 {
			out["device "+name] = "yes"
		}
	}
	return out
}

// portNames names a port after the identifier that shows it first.
func (w *world) portNames(s *slot) {
	if s.id == nil {
		return
	}
	if port := s.id.SrcPort(); port != 0 && w.ports[port] == "" {
		w.ports[port] = fmt.Sprintf("%s%d's", s.name, s.made)
	}
}

// address returns an address as the names of its host and port.
func (w *world) address(a cmid.Addr) string {
	port := w.ports[a.Port()]
	switch {
	case a.Port() == 0: // a failed bind leaves an address without a port
		return "none"
	case port == "":
		port = "?"
	}
	return w.rig.hostName(a.Addr()) + ":" + port
}

func (r *Rig) hostName(ip netip.Addr) string {
	for _, h := range r.hosts() {
		if h.ip == ip {
			return h.name
		}
	}
	if !ip.IsValid() {
		return "none"
	}
	return ip.String()
}

// event returns an event as one line, or "" for events that are not compared.
func event(id *cmid.ID, ev cmid.Event) string {
	l, name := id.Limits(), strings.TrimPrefix(fmt.Sprintf("%T", ev), "*cmid.")
	switch ev := ev.(type) {
	case *cmid.TimewaitExit:
		return "" // after 2 s on some kernels, 0.2 s on others; never on iWARP
	case *cmid.ConnectRequest:
		return name + data(ev.PrivateData, l.ConnectData)
	case *cmid.ConnectResponse:
		return name + data(ev.PrivateData, l.AcceptData)
	case *cmid.Established:
		return name + data(ev.PrivateData, l.AcceptData)
	case *cmid.Rejected:
		return fmt.Sprintf("%s(%d)", name, ev.Status) + data(ev.PrivateData, l.RejectData)
	case *cmid.Disconnected:
		if ev.Err != nil {
			return fmt.Sprintf("%s(%d: %s)", name, ev.Status, errorName(ev.Err))
		}
		return fmt.Sprintf("%s(%d)", name, ev.Status)
	case cmid.Failure:
		return fmt.Sprintf("%s(%d)", name, ev.Base().Status)
	}
	return name
}

// data returns private data as text: its bytes, or that it is as long as possible. It drops the
// zeros that follow on InfiniBand.
func data(b []byte, limit int) string {
	s := strings.TrimRight(string(b), "\x00")
	switch {
	case s == "":
		return ""
	case len(s) == limit && s == string(privateData("max", limit)):
		return " data=max"
	}
	return fmt.Sprintf(" data=%q", s)
}

// params returns the connection parameters in an event, or "" if it has none.
func params(ev cmid.Event) string {
	var p cmid.ConnParam
	switch ev := ev.(type) {
	case *cmid.ConnectRequest:
		p = ev.Param
	case *cmid.ConnectResponse:
		p = ev.Param
	case *cmid.Established:
		p = ev.Param
	default:
		return ""
	}
	depth := func(n uint8) string {
		if n >= 16 { // the device's maximum
			return "most"
		}
		return fmt.Sprint(n)
	}
	s := "reads=" + depth(p.ResponderResources) + "/" + depth(p.InitiatorDepth)
	if p.RetryCount != 0 || p.RNRRetryCount != 0 {
		s += fmt.Sprintf(" retries=%d/%d", p.RetryCount, p.RNRRetryCount)
	}
	if p.QPNum != 0 {
		s += " qp"
	}
	if p.FlowControl {
		s += " flow"
	}
	if p.SRQ {
		s += " srq"
	}
	return s
}

// errnoOf returns the name of the errno in the answer to a command.
func errnoOf(ev cmid.Event) string {
	if f, ok := ev.(*cmid.CommandFailed); ok {
		return errorName(f)
	}
	return "ok"
}

// errorName returns the name of an error's errno.
func errorName(err error) string {
	var errno unix.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, errNoDevice):
		return errNoDevice.Error()
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}
