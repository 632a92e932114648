package states

import "testing"

// The following is not in the oracle: calls that librdmacm answers without the kernel or that were
// added in 2025, the state after a failing command, and events out of place. The sources are the
// manual pages of section 3.

// TestCallsBeyondTheOracle: rdma_create_qp(3) wants a device and brings the queue pair to INIT;
// rdma_leave_multicast(3) a membership; rdma_resolve_addrinfo(3) and rdma_join_multicast(3) an
// InfiniBand device; rdma_write_cm_event(3) any identifier.
func TestCallsBeyondTheOracle(t *testing.T) {
	for _, c := range []struct {
		f     Flavor
		s     State
		op    Op
		v     Verdict
		next  State
		errno Errno
	}{
		{0, Idle, OpCreateQP, Refuse, Idle, EINVAL},
		{0, Bound, OpCreateQP, Refuse, Bound, EINVAL},
		{Device, Bound, OpCreateQP, Allow, Bound, 0},
		{0, AddrResolved, OpCreateQP, Allow, AddrResolved, 0},
		{IWARP, RouteResolved, OpCreateQP, Allow, RouteResolved, 0},
		{0, ConnectRequested, OpCreateQP, Allow, ConnectRequested, 0},
		{Device, Listening, OpCreateQP, Refuse, Listening, EINVAL},
		{0, Timewait, OpCreateQP, Refuse, Timewait, EINVAL},
		{0, Failed, OpCreateQP, Refuse, Failed, EINVAL},
		{IWARP, Timewait, OpCreateQP, Allow, Timewait, 0},
		{UD, AddrResolved, OpCreateQP, Allow, AddrResolved, 0},
		{UD | Device, Listening, OpCreateQP, Allow, Listening, 0},
		{UD, Listening, OpCreateQP, Refuse, Listening, EINVAL},

		{UD, Connected, OpLeaveMulticast, Allow, Connected, 0},
		{UD | Device, Bound, OpLeaveMulticast, Allow, Bound, 0},
		{UD, Bound, OpLeaveMulticast, Refuse, Bound, EADDRNOTAVAIL},
		{UD, Idle, OpLeaveMulticast, Refuse, Idle, EADDRNOTAVAIL},
		{0, Connected, OpLeaveMulticast, Refuse, Connected, EADDRNOTAVAIL},
		{IWARP | UD, AddrResolved, OpLeaveMulticast, Refuse, AddrResolved, EADDRNOTAVAIL},
		{IWARP | UD, AddrResolved, OpJoinMulticast, Refuse, AddrResolved, ENOSYS},
		{IWARP | UD | Device, Bound, OpJoinMulticast, Refuse, Bound, ENOSYS},
		{IWARP | UD, Bound, OpJoinMulticast, Refuse, Bound, EINVAL},

		{Device, Bound, OpResolveAddrInfo, Allow, AddrInfoQuery, 0},
		{0, Bound, OpResolveAddrInfo, Refuse, Bound, EINVAL},
		{0, Idle, OpResolveAddrInfo, Refuse, Idle, EINVAL},
		{IWARP | Device, Bound, OpResolveAddrInfo, Refuse, Bound, EOPNOTSUPP},
		{IWARP, Bound, OpResolveAddrInfo, Refuse, Bound, EINVAL},
		{Device, AddrInfoResolved, OpResolveAddr, Allow, AddrQuery, 0},
		{Device, AddrInfoResolved, OpResolveRoute, Allow, RouteQuery, 0},
		{Device, AddrInfoResolved, OpConnect, Refuse, AddrInfoResolved, EINVAL},
		{Device, AddrInfoQuery, OpResolveAddrInfo, Refuse, AddrInfoQuery, EINVAL},

		{0, Idle, OpWriteCMEvent, Allow, Idle, 0},
		{0, Failed, OpWriteCMEvent, Allow, Failed, 0},
		{0, Removed, OpWriteCMEvent, Refuse, Removed, ENXIO},
		{0, Destroying, OpWriteCMEvent, Refuse, Destroying, ENOENT},

		// iWARP waits for Established after its Accept; the oracle's kernel is established
		// immediately.
		{IWARP, Accepting, OpAccept, Refuse, Accepting, EINVAL},
		{IWARP, Accepting, OpReject, Refuse, Accepting, EINVAL},
		{IWARP, Accepting, OpDisconnect, Guard, Accepting, EINVAL},
		{IWARP, Accepting, OpInitQPAttrReady, Allow, Accepting, 0},
		{IWARP, Disconnecting, OpDisconnect, Allow, Disconnecting, 0},
		{IWARP | UD, Bound, OpListen, Guard, Bound, EINVAL},
		{IWARP | UD, RouteResolved, OpConnect, Guard, RouteResolved, EINVAL},
	} {
		in := Requested(c.op)
		next, v := Step(c.f, c.s, in)
		if errno := Why(c.f, c.s, in).Errno; next != c.next || v != c.v || errno != c.errno {
			t.Errorf("%v, %v, %v: %v %v next %v, want %v %v next %v", c.f, c.s, in, v, errno, next, c.v, c.errno, c.next)
		}
	}
}

// TestWhereFailureLeaves lists every command whose failure moves the identifier; no other does.
func TestWhereFailureLeaves(t *testing.T) {
	type from struct {
		op Op
		s  State
	}
	everywhere := map[from]State{
		{OpBindAddr, Bound}: Idle,
		// also when it was idle: ResolveAddr has bound it
		{OpResolveAddr, AddrQuery}:         Bound,
		{OpResolveRoute, RouteQuery}:       AddrResolved,
		{OpSetIBPath, RouteQuery}:          AddrResolved,
		{OpListen, Listening}:              Bound,
		{OpConnect, Connecting}:            RouteResolved,
		{OpAccept, Accepting}:              Failed, // a failing accept rejects the peer
		{OpResolveAddrInfo, AddrInfoQuery}: Bound,
	}
	only := map[Flavor]map[from]State{
		0:          {{OpEstablish, Connected}: Failed}, // as Accept
		IWARP:      {},
		UD:         {{OpAccept, Connected}: Failed},
		IWARP | UD: {},
	}
	cells(func(f Flavor, s State, in Input) {
		op, ok := in.commandOf()
		if !ok || int(in) < firstFailed || !Exists(f, s) {
			return
		}
		want, moves := everywhere[from{op, s}]
		if !moves {
			want, moves = only[f&^Device][from{op, s}]
		}
		if !moves {
			want = s
		}
		if next, v := Step(f, s, in); next != want || v != Allow {
			t.Errorf("%v, %v, %v: %v next %v, want %v", f, s, in, v, next, want)
		}
	})
}

// TestEventsOutOfPlace: events that are late, duplicates, or unsolicited change nothing and are not
// reported.
func TestEventsOutOfPlace(t *testing.T) {
	for _, c := range []struct {
		f    Flavor
		s    State
		k    Kind
		v    Verdict
		next State
	}{
		// the query was answered already
		{0, Bound, KindAddrResolved, Ignore, Bound},
		{0, AddrResolved, KindAddrResolved, Ignore, AddrResolved},  // twice
		{0, AddrResolved, KindRouteResolved, Ignore, AddrResolved}, // unsolicited
		{0, RouteResolved, KindRouteError, Ignore, RouteResolved},  // late
		{0, Connected, KindConnectRequest, Ignore, Connected},      // no listener
		{0, Connected, KindEstablished, Ignore, Connected},         // twice
		{0, Connected, KindRejected, Ignore, Connected},            // too late to be rejected
		// Establish is the owner's to send
		{0, Responded, KindEstablished, Ignore, Responded},
		{0, Responded, KindConnectResponse, Ignore, Responded},       // twice
		{IWARP, Connecting, KindConnectResponse, Ignore, Connecting}, // iWARP has none
		{UD, Connecting, KindConnectResponse, Ignore, Connecting},    // nor have datagrams
		// a child is silent until it is accepted
		{0, ConnectRequested, KindRejected, Ignore, ConnectRequested},
		{0, ConnectRequested, KindDisconnected, Ignore, ConnectRequested},
		{0, Connecting, KindDisconnected, Ignore, Connecting},
		{0, PeerDisconnected, KindDisconnected, Ignore, PeerDisconnected},
		{0, Timewait, KindDisconnected, Ignore, Timewait},
		{0, Failed, KindEstablished, Ignore, Failed},
		{0, Failed, KindTimewaitExit, Ignore, Failed}, // none comes after a rejection
		{IWARP, Timewait, KindTimewaitExit, Ignore, Timewait},
		{UD, Connected, KindDisconnected, Ignore, Connected},
		{0, Connecting, KindAddrError, Ignore, Connecting},
		{0, Connecting, KindConnectError, Allow, Failed},
		{0, Accepting, KindConnectError, Allow, Failed},
		// a lookup ends like a connect, however the device words it
		{UD, Connecting, KindConnectError, Allow, Failed},
		{UD, Connecting, KindRejected, Allow, Failed},
		{UD, Connecting, KindAddrError, Allow, Failed}, // queue keys contradict
		{0, AddrResolved, KindMulticastJoin, Ignore, AddrResolved},
		{UD, Connected, KindMulticastJoin, Allow, Connected}, // asked before, done now
		{UD, Connected, KindMulticastError, Allow, Connected},
		{UD, Idle, KindMulticastError, Ignore, Idle},
		{0, Bound, KindDeviceRemoval, Ignore, Bound}, // a wildcard has no device to lose
		{Device, Bound, KindDeviceRemoval, Allow, Removed},
		{Device, AddrQuery, KindDeviceRemoval, Allow, Removed},
		{0, ConnectRequested, KindDeviceRemoval, Allow, Removed},
		{0, Removed, KindDeviceRemoval, Ignore, Removed},
		{0, Removed, KindDisconnected, Ignore, Removed}, // may interleave with a removal
		{0, Connected, KindUnreachable, Allow, Connected},
		{0, RouteResolved, KindUnreachable, Allow, RouteResolved},
		{IWARP, Connected, KindUnreachable, Ignore, Connected}, // no next hop to watch
		{0, Accepting, KindUnreachable, Allow, Failed},
		{IWARP, Accepting, KindRejected, Allow, Failed},
		{IWARP, Accepting, KindDisconnected, Allow, Timewait},
		{0, Accepting, KindDisconnected, Allow, PeerDisconnected},
		{0, Idle, KindUser, Allow, Idle},
		{0, Connected, KindInternal, Allow, Connected},
		{0, Removed, KindUser, Ignore, Removed},
		{0, Idle, KindAddrInfoResolved, Ignore, Idle},
		{0, AddrInfoQuery, KindAddrInfoResolved, Allow, AddrInfoResolved},
		{0, AddrInfoQuery, KindAddrInfoError, Allow, Bound},
		{0, AddrInfoResolved, KindAddrInfoError, Ignore, AddrInfoResolved},
	} {
		if next, v := Step(c.f, c.s, Occurred(c.k)); next != c.next || v != c.v {
			t.Errorf("%v, %v, %v: %v next %v, want %v next %v", c.f, c.s, c.k, v, next, c.v, c.next)
		}
	}
}
