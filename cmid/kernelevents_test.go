package cmid

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/states"
)

// TestEveryKernelEvent shows, for each event of rdma_get_cm_event(3), its type here, the state
// afterwards, and whether it answers the command.
func TestEveryKernelEvent(t *testing.T) {
	var (
		plain  = DriverEvent{}
		failed = DriverEvent{Status: -int32(unix.ETIMEDOUT)}
		rows   = map[string]struct {
			kind     states.Kind
			in, then states.State
			asked    Command
			want     Event
			ev       DriverEvent
		}{
			"ADDR_RESOLVED":     {states.KindAddrResolved, states.AddrQuery, states.AddrResolved, &ResolveAddr{}, &AddrResolved{}, plain},
			"ADDR_ERROR":        {states.KindAddrError, states.AddrQuery, states.Bound, &ResolveAddr{}, &AddrError{}, failed},
			"ROUTE_RESOLVED":    {states.KindRouteResolved, states.RouteQuery, states.RouteResolved, &ResolveRoute{}, &RouteResolved{}, plain},
			"ROUTE_ERROR":       {states.KindRouteError, states.RouteQuery, states.AddrResolved, &ResolveRoute{}, &RouteError{}, failed},
			"CONNECT_REQUEST":   {states.KindConnectRequest, states.Listening, states.Listening, nil, &ConnectRequest{}, plain},
			"CONNECT_RESPONSE":  {states.KindConnectResponse, states.Connecting, states.Responded, &Connect{}, &ConnectResponse{}, plain},
			"CONNECT_ERROR":     {states.KindConnectError, states.Connecting, states.Failed, &Connect{}, &ConnectError{}, failed},
			"UNREACHABLE":       {states.KindUnreachable, states.Connecting, states.Failed, &Connect{}, &Unreachable{}, failed},
			"REJECTED":          {states.KindRejected, states.Connecting, states.Failed, &Connect{}, &Rejected{}, DriverEvent{Status: 28}},
			"ESTABLISHED":       {states.KindEstablished, states.Connecting, states.Connected, &Connect{}, &Established{}, plain},
			"DISCONNECTED":      {states.KindDisconnected, states.Disconnecting, states.Timewait, &Disconnect{}, &Disconnected{}, plain},
			"DEVICE_REMOVAL":    {states.KindDeviceRemoval, states.RouteQuery, states.Removed, &ResolveRoute{}, &DeviceRemoval{}, plain},
			"MULTICAST_JOIN":    {states.KindMulticastJoin, states.AddrResolved, states.AddrResolved, &JoinMulticast{}, &MulticastJoin{}, plain},
			"MULTICAST_ERROR":   {states.KindMulticastError, states.AddrResolved, states.AddrResolved, &JoinMulticast{}, &MulticastError{}, failed},
			"ADDR_CHANGE":       {states.KindAddrChange, states.RouteQuery, states.RouteQuery, nil, &AddrChange{}, plain},
			"TIMEWAIT_EXIT":     {states.KindTimewaitExit, states.Timewait, states.Timewait, nil, &TimewaitExit{}, plain},
			"ADDRINFO_RESOLVED": {states.KindAddrInfoResolved, states.AddrInfoQuery, states.AddrInfoResolved, &ResolveIBService{}, &AddrInfoResolved{}, plain},
			"ADDRINFO_ERROR":    {states.KindAddrInfoError, states.AddrInfoQuery, states.Bound, &ResolveIBService{}, &AddrInfoError{}, failed},
			"USER":              {states.KindUser, states.RouteQuery, states.RouteQuery, nil, &User{Arg: 1}, DriverEvent{Arg: 1}},
			"INTERNAL":          {states.KindInternal, states.RouteQuery, states.RouteQuery, nil, &Internal{Arg: 1}, DriverEvent{Arg: 1}},
		}
		seen = make(map[states.Kind]bool)
	)
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			seen[r.kind] = true
			if r.kind.C() != "RDMA_CM_EVENT_"+name {
				t.Errorf("%v is %s in C", r.kind, r.kind.C())
			}
			s := &script{device: dev{}}
			c := open(t, s)
			var delivered []Event
			var answers []Command
			c.sink = func(_ *ID, ev Event, p *Pending) {
				var answered Command
				if p.Answer(ev) {
					answered = p.Command
				}
				delivered, answers = append(delivered, ev), append(answers, answered)
			}
			ps := PortSpaceTCP
			if _, ok := r.asked.(*JoinMulticast); ok {
				ps = PortSpaceUDP
			}
			id, err := c.CreateID(ps)
			if err != nil {
				t.Fatal(err)
			}
			id.enterState(r.in)
			if r.asked != nil {
				id.Expect(r.asked, nil).awaits = true
			}
			r.ev.Kind, r.ev.Child = r.kind, s.id(s.up.NewHandle())
			s.up.Event(id.Handle(), &r.ev)
			if len(delivered) != 1 || fmt.Sprintf("%T", delivered[0]) != fmt.Sprintf("%T", r.want) || delivered[0].Kind() != r.kind {
				t.Fatalf("got %v, want one %T", delivered, r.want)
			}
			if answers[0] != r.asked {
				t.Errorf("it answers %v, want %v", answers[0], r.asked)
			}
			if id.State() != r.then {
				t.Errorf("state %v, want %v", id.State(), r.then)
			}
			f, ok := delivered[0].(Failure)
			if ok != (r.ev.Status != 0) {
				t.Errorf("%T is a failure: %v", delivered[0], ok)
			}
			if r.ev.Status < 0 && (!errors.Is(f, unix.ETIMEDOUT) || f.Failed() != r.asked) {
				t.Errorf("%v of %v, want ETIMEDOUT of the command", f, f.Failed())
			}
		})
	}
	for k := range states.Kind(states.NumKernelKinds) {
		if !seen[k] {
			t.Errorf("%v has no row", k)
		}
	}
}

// The kernel reports UNREACHABLE also when the next hop gets another MAC address. In a state that
// does not wait for a peer's answer it has failed nothing, so it is no Failure and answers nothing.
func TestNeighbourChanged(t *testing.T) {
	for _, in := range []states.State{states.RouteResolved, states.Connected} {
		s := &script{device: dev{}}
		c := open(t, s)
		var delivered []Event
		c.sink = func(_ *ID, ev Event, answers *Pending) {
			delivered = append(delivered, ev)
			if answers != nil {
				t.Errorf("in %v it answers %v", in, answers)
			}
		}
		id, err := c.CreateID(PortSpaceTCP)
		if err != nil {
			t.Fatal(err)
		}
		id.enterState(in)
		s.up.Event(id.Handle(), &DriverEvent{Kind: states.KindUnreachable, Status: -int32(unix.ETIMEDOUT)})
		if len(delivered) != 1 {
			t.Fatalf("in %v: got %v", in, delivered)
		}
		if _, ok := delivered[0].(*NeighbourChanged); !ok || id.State() != in {
			t.Errorf("in %v: got a %T and the state %v", in, delivered[0], id.State())
		}
	}
}
