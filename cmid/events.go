package cmid

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// handleEvent takes an event from the driver through the state machine and delivers it.
func (id *ID) handleEvent(ev *DriverEvent) {
	if ev.Kind == states.KindQPFailed { // nothing that rdma_cm knows of
		id.ch.sink(id, &QPFailed{EventBase{ID: id.handle}}, nil)
		return
	}
	if ev.Kind == states.KindListenFailed { // likewise
		if id.state == states.Listening {
			id.ch.sink(id, ev.typedEvent(id, id.state, nil), nil)
		}
		return
	}
	before := id.state
	next, v := states.Step(id.Flavor(), id.state, states.Occurred(ev.Kind))
	switch {
	case v == states.Allow && ev.Kind == states.KindConnectRequest:
		id.deliverRequest(ev)
		return
	case ev.Kind == states.KindConnectRequest:
		_ = ev.Child.Do(&DestroyID{}) // the listener has gone, so it would never be answered
		return
	case v != states.Allow:
		return // the table ignores it: late, duplicate or unsolicited
	}
	id.enterState(next)
	waiting := id.commands.waiting()
	answered := id.commands.takeAnsweredBy(ev)
	if answered != nil {
		waiting = answered
	}
	var asked Command
	if waiting != nil {
		asked = waiting.Command
	}
	out := ev.typedEvent(id, before, asked)
	if out == nil {
		return // a kernel newer than this code; it must be tolerated (rdma_get_cm_event(3) grows)
	}
	id.ch.sink(id, out, answered)
	if ev.Kind == states.KindDeviceRemoval {
		// none if the identifier was destroyed just now
		for p := id.commands.waitingJoin(anyJoin); p != nil; p = id.commands.waitingJoin(anyJoin) {
			p.failJoin("the device was removed", unix.ENODEV)
		}
	}
}

// deliverRequest makes the identifier that a ConnectRequest brings.
func (id *ID) deliverRequest(ev *DriverEvent) {
	child := id.ch.addID(ev.Child, id.ps, id.flavor&states.UD, states.ConnectRequested)
	in := child.Info()
	id.ch.sink(child, &ConnectRequest{
		EventBase: EventBase{ID: child.handle, Status: ev.Status}, Listener: id.handle,
		Local: in.Local, Peer: in.Peer, PrivateData: cloneBytes(ev.PrivateData), Param: ev.Param,
	}, nil)
}

// typedEvent makes the typed event of id. asked is the command that has failed if the event is a
// failure; nil: none.
func (ev *DriverEvent) typedEvent(id *ID, before states.State, asked Command) Event {
	base, in := EventBase{ID: id.handle, Status: ev.Status}, id.Info()
	switch ev.Kind {
	case states.KindAddrResolved:
		return &AddrResolved{EventBase: base, Local: in.Local, Peer: in.Peer, Device: in.Device}
	case states.KindRouteResolved:
		return &RouteResolved{base}
	case states.KindConnectResponse:
		return &ConnectResponse{EventBase: base, PrivateData: cloneBytes(ev.PrivateData), Param: ev.Param}
	case states.KindEstablished:
		e := &Established{
			EventBase: base, Local: in.Local, Peer: in.Peer, PrivateData: cloneBytes(ev.PrivateData), Param: ev.Param,
			MaxMessage: id.Limits().MaxMessage, Fallback: ev.Err,
		}
		if id.flavor&states.UD != 0 {
			e.UD = ev.udParam()
		}
		return e
	case states.KindDisconnected:
		return &Disconnected{EventBase: base, Err: disconnectError(ev)}
	case states.KindDeviceRemoval:
		return &DeviceRemoval{EventBase: base, Device: in.Device, Err: ev.Err}
	case states.KindMulticastJoin:
		return &MulticastJoin{EventBase: base, Addr: ev.Addr, UD: *ev.udParam()}
	case states.KindAddrChange:
		return &AddrChange{base}
	case states.KindUnreachable:
		if id.state == before { // nothing has failed
			return &NeighbourChanged{base}
		}
	case states.KindTimewaitExit:
		return &TimewaitExit{base}
	case states.KindAddrInfoResolved:
		return &AddrInfoResolved{EventBase: base, Info: ev.AddrInfo}
	case states.KindUser:
		return &User{EventBase: base, Arg: ev.Arg}
	case states.KindInternal:
		return &Internal{EventBase: base, Arg: ev.Arg}
	}
	return ev.failureEvent(FailureBase{
		EventBase: base, Command: asked, State: before, Local: in.Local, Peer: in.Peer,
		Err: statusError(ev), History: id.History(),
	})
}

// failureEvent makes an event that is a failure of f; nil when it is none.
func (ev *DriverEvent) failureEvent(f FailureBase) Event {
	switch ev.Kind {
	case states.KindAddrError:
		return &AddrError{f.withOp("resolve_addr")}
	case states.KindRouteError:
		return &RouteError{f.withOp("resolve_route")}
	case states.KindConnectError:
		return &ConnectError{f.withOp("connect")}
	case states.KindUnreachable:
		return &Unreachable{f.withOp("connect")}
	case states.KindRejected:
		f = f.withOp("connect")
		f.Err = &rejection{RejectReason(ev.Status)}
		if f.Remedy == "" && RejectReason(ev.Status) == RejectReset && len(ev.PrivateData) == 0 {
			f.Remedy = "it said no without a reason, or what listens there does not speak iWARP and has hung up"
		}
		return &Rejected{FailureBase: f, Reason: RejectReason(ev.Status), PrivateData: cloneBytes(ev.PrivateData)}
	case states.KindMulticastError:
		return &MulticastError{f.withOp("join_multicast")}
	case states.KindAddrInfoError:
		return &AddrInfoError{f.withOp("resolve_addrinfo")}
	case states.KindListenFailed:
		return &ListenFailed{f.withOp("listen")}
	}
	return nil
}

// withOp sets the name of the failed command, or of what if there was no command.
func (f *FailureBase) withOp(what string) FailureBase {
	f.Op = what
	if f.Command != nil {
		f.Op, f.Remedy = opName(f.Command.Op()), errnoRemedy(f.Command.Op(), f.Err)
	}
	return *f
}

// udParam returns the address of a datagram identifier's peer, or of its group.
func (ev *DriverEvent) udParam() *UDParam {
	return &UDParam{AH: ev.AH, QPN: ev.Param.QPNum, QKey: ev.Param.QKey}
}

// rejection is a REJECTED event's cause. To errors.Is it is ECONNREFUSED, as librdmacm's
// synchronous calls report it.
type rejection struct{ reason RejectReason }

func (r *rejection) Error() string { return "rejected: " + r.reason.String() }
func (r *rejection) Unwrap() error { return unix.ECONNREFUSED }

// statusError returns the cause of a failing event: the driver's error, else the status.
func statusError(ev *DriverEvent) error {
	switch {
	case ev.Err != nil:
		return ev.Err
	case ev.Status < 0:
		return unix.Errno(-ev.Status)
	case ev.Status > 0:
		return &rejection{RejectReason(ev.Status)}
	}
	return unix.EIO
}

func disconnectError(ev *DriverEvent) error {
	if ev.Err != nil {
		return ev.Err
	}
	if ev.Status < 0 {
		return unix.Errno(-ev.Status)
	}
	return nil
}

func cloneBytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append([]byte(nil), b...)
}
