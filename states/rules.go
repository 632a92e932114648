package states

// rule decides the cells flavors x from x input. Rules never overlap, so their order has no
// meaning.
type rule struct {
	in      Input
	flavors flavorSet
	from    stateSet
	to      State // stay: unchanged
	verdict Verdict
	errno   Errno  // Refuse and Guard
	why     string // Refuse and Guard; "": composed from the state and the command's precondition
}

// stay is the next state of a rule that changes none.
const stay = State(0xff)

// Groups of states.
const (
	allStates stateSet = 1<<NumStates - 1
	dead      stateSet = 1<<Removed | 1<<Destroying
	live               = allStates &^ dead

	// deviceless states have no device, whatever the flavor; deviceOptional ones may.
	deviceless     stateSet = 1 << Idle
	deviceOptional stateSet = 1<<Bound | 1<<AddrQuery | 1<<Listening
	attached                = live &^ deviceless // together with the flavor set device

	// resolving states have no communication identifier (ib_cm, iw_cm) yet.
	resolving stateSet = 1<<Bound | 1<<AddrQuery | 1<<AddrResolved | 1<<RouteQuery | 1<<RouteResolved |
		1<<AddrInfoQuery | 1<<AddrInfoResolved
	settingUp stateSet = 1<<Connecting | 1<<ConnectRequested | 1<<Responded | 1<<Accepting
	// the peer's answer is due, or the answer to ours
	answered stateSet = 1<<Connecting | 1<<Responded | 1<<Accepting
	ending   stateSet = 1<<Disconnecting | 1<<PeerDisconnected | 1<<Timewait
	connects          = settingUp | ending | 1<<Connected | 1<<Failed
)

// existing lists, for each flavor, the states that its identifiers can be in. TestReachable
// derives it from the rules.
var existing = func() (ex [NumFlavors]stateSet) {
	for f := range Flavor(NumFlavors) {
		ex[f] = allStates
		if f&IWARP != 0 {
			ex[f] &^= in(Responded, PeerDisconnected, AddrInfoQuery, AddrInfoResolved)
		}
		if f&UD != 0 {
			ex[f] &^= in(Responded, Accepting) | ending
		}
		if f&IWARP != 0 && f&UD != 0 { // neither Listen nor Connect
			ex[f] &^= connects | in(Listening)
		}
	}
	return ex
}()

func allow(op Op, fs flavorSet, from stateSet, to State) rule {
	return rule{in: Requested(op), flavors: fs, from: from, to: to, verdict: Allow}
}

func fails(op Op, fs flavorSet, from stateSet, to State) rule {
	return rule{in: CommandFailed(op), flavors: fs, from: from, to: to, verdict: Allow}
}

func occurs(k Kind, fs flavorSet, from stateSet, to State) rule {
	return rule{in: Occurred(k), flavors: fs, from: from, to: to, verdict: Allow}
}

func refuse(op Op, fs flavorSet, from stateSet, errno Errno, why string) rule {
	return rule{in: Requested(op), flavors: fs, from: from, to: stay, verdict: Refuse, errno: errno, why: why}
}

func guard(op Op, fs flavorSet, from stateSet, why string) rule {
	return rule{in: Requested(op), flavors: fs, from: from, to: stay, verdict: Guard, errno: EINVAL, why: why}
}

// rules is the state machine. Where no rule decides, a command that is asked is refused (EINVAL;
// ENXIO in Removed, ENOENT in Destroying), a command's failure does not change the state, and an
// event is ignored.
//
// Where both a command and an event report one change, the state changes with the event, although
// the kernel has changed its own state already. SetIBPath waits for RouteResolved, and
// NotifyCommEst for Established. On iWARP Accept waits for Established and Disconnect for
// Disconnected.
var rules = [][]rule{commandRules, deviceRules, guardRules, failureRules, eventRules}

// commandRules are the commands that make a connection, and the options.
var commandRules = []rule{
	allow(OpBindAddr, every, in(Idle), Bound),
	allow(OpResolveAddr, every, in(Idle, Bound, AddrInfoResolved), AddrQuery),
	allow(OpResolveRoute, every, in(AddrResolved, AddrInfoResolved), RouteQuery),
	allow(OpSetIBPath, every, in(AddrResolved), RouteQuery),
	allow(OpListen, rc|ib, in(Bound), Listening),
	allow(OpConnect, rc|ib, in(RouteResolved), Connecting),
	allow(OpAccept, rc, in(ConnectRequested), Accepting),
	allow(OpAccept, ud, in(ConnectRequested), Connected), // no event follows
	allow(OpReject, every, in(ConnectRequested), Failed),
	allow(OpReject, rc&ib, in(Responded), Failed),
	allow(OpEstablish, rc&ib, in(Responded), Connected), // no event follows
	allow(OpDisconnect, rc, in(Connected), Disconnecting),
	allow(OpDisconnect, rc&ib, in(PeerDisconnected), Timewait),
	// asked twice, or crossing the peer's: harmless
	allow(OpDisconnect, rc, in(Disconnecting, Timewait), stay),
	allow(OpDestroyID, every, allStates&^in(Destroying), Destroying),

	allow(OpQuery, every, live, stay),
	allow(OpMigrateID, every, live, stay),
	allow(OpWriteCMEvent, every, live, stay),
	allow(OpSetTOS, every, live, stay),
	allow(OpSetReuseAddr, every, live&^in(Listening), stay),
	allow(OpClearReuseAddr, every, in(Idle), stay),
	allow(OpSetAFOnly, every, in(Idle, Bound), stay),
	allow(OpSetAckTimeout, rc, live, stay),
	refuse(OpSetAckTimeout, ud, live, EINVAL, "a datagram identifier has no acknowledgements to wait for"),
}

// deviceRules are the commands that need a device.
var deviceRules = []rule{
	allow(OpNotifyCommEst, rc&ib, in(Accepting), stay),
	refuse(OpNotifyCommEst, rc&ib, in(Connected), EISCONN, "the connection is established already: nothing to do"),
	// iw_cm accepts this in any state and does nothing
	allow(OpNotifyCommEst, rc&iw&device, connects|in(Listening), stay),
	allow(OpNotifyPathMig, rc&iw&device, connects|in(Listening), stay),

	allow(OpInitQPAttrInit, rc&device, resolving|settingUp|in(Connected), stay),
	allow(OpInitQPAttrInit, rc&iw, ending|in(Failed), stay),
	allow(OpInitQPAttrInit, ud&device, attached, stay),
	allow(OpInitQPAttrReady, rc&device, resolving|in(ConnectRequested, Responded, Accepting, Connected), stay),
	allow(OpInitQPAttrReady, rc&iw, ending|in(Connecting, Failed), stay),
	allow(OpInitQPAttrReady, ud&device, attached, stay),
	allow(OpInitQPAttrOther, rc&device, resolving, stay),
	allow(OpInitQPAttrOther, ud&device, attached, stay),
	// rdma_create_qp brings the queue pair to INIT, so it can wherever those attributes can be had.
	allow(OpCreateQP, rc&device, resolving|settingUp|in(Connected), stay),
	allow(OpCreateQP, rc&iw, ending|in(Failed), stay),
	allow(OpCreateQP, ud&device, attached, stay),

	allow(OpJoinMulticast, ib&ud&device, in(Bound, AddrResolved), stay),
	refuse(OpJoinMulticast, iw&ud&device, in(Bound, AddrResolved), ENOSYS, "iWARP has no multicast"),
	allow(OpLeaveMulticast, ib&ud&device, attached, stay),
	refuse(OpLeaveMulticast, ib&ud&^device, live, EADDRNOTAVAIL, "not a member of any group"),
	refuse(OpLeaveMulticast, iw|rc, live, EADDRNOTAVAIL, "not a member of any group: only a datagram identifier on InfiniBand or RoCE can be"),
	allow(OpResolveAddrInfo, ib&device, in(Bound), AddrInfoQuery),
	refuse(OpResolveAddrInfo, iw&device, in(Bound), EOPNOTSUPP, "iWARP has no subnet administrator that could resolve a service"),
}

// guardRules are the commands that the kernel would execute, and this table refuses. Each states
// the kernel's behaviour.
var guardRules = []rule{
	guard(OpListen, every, in(Idle),
		"not bound: send BindAddr first; the kernel would listen on 0.0.0.0 and a random port"),
	guard(OpListen, iw&ud, in(Bound),
		"iWARP has no datagrams; the kernel would listen for connections"),
	guard(OpConnect, iw&ud, in(RouteResolved),
		"iWARP has no datagrams; the kernel would make a connection"),
	guard(OpAccept, rc, in(Connecting),
		"the peer decides: await Established or Rejected, or give up with DestroyID; the kernel would abort the request, then block the DestroyID for up to 102 s (InfiniBand) or crash (iWARP)"),
	guard(OpEstablish, rc, in(Connecting),
		"the peer has not replied: await ConnectResponse, or give up with DestroyID; the kernel would abort the request, then block the DestroyID for up to 102 s (InfiniBand) or crash (iWARP)"),
	guard(OpReject, rc, in(Connecting),
		"to give up send DestroyID; the kernel would abort the request, then block the DestroyID for up to 102 s (InfiniBand) or crash (iWARP)"),
	guard(OpAccept, rc&ib, in(Responded),
		"this is the connecting side: send Establish; the kernel would fail and reject the peer"),
	guard(OpAccept, rc&ib, in(Accepting),
		"accepted already: await Established; the kernel would fail and kill the connection"),
	guard(OpEstablish, rc, in(ConnectRequested),
		"this is the accepting side: send Accept; the kernel would fail and reject the peer"),
	guard(OpEstablish, ud, in(ConnectRequested),
		"this is the accepting side: send Accept; the kernel would accept without a queue pair number"),
	guard(OpEstablish, rc&ib, in(Accepting),
		"accepted already, the connecting side establishes: await Established; the kernel would fail and reject the peer"),
	guard(OpReject, rc&ib, in(Accepting),
		"accepted already: give up with DestroyID; the kernel would reject, then block the DestroyID for up to 70 s"),
	guard(OpNotifyPathMig, rc&ib, in(Connected),
		"there is no alternate path to go over to; the kernel would swap the path for an empty one, and a later Disconnect would reach nobody"),
	guard(OpDisconnect, rc&ib, settingUp,
		"not connected yet: give up with DestroyID; the kernel would answer 0 and do nothing"),
	guard(OpDisconnect, rc&iw, in(Connecting, ConnectRequested),
		"not connected yet: give up with DestroyID; the kernel would answer 0 and do nothing, after 10 s when it is connecting"),
	guard(OpDisconnect, rc&iw, in(Accepting),
		"not established yet: await Established, or give up with DestroyID; the kernel would disconnect before it reports the connection"),
	guard(OpDisconnect, rc, in(Failed),
		"there is no connection: send DestroyID; the kernel would answer 0 and do nothing"),
	guard(OpDisconnect, ud, in(Connecting, ConnectRequested, Connected, Failed),
		"a datagram identifier has no connection: send DestroyID; the kernel would answer 0 and do nothing"),
	guard(OpDisconnect, ib&device, in(Listening),
		"a listener has no connection: send DestroyID; the kernel would answer 0 and do nothing"),
}

// failureRules specify the state of the identifier after a failed command. A failing Disconnect
// does not change the state, so that it can be repeated.
var failureRules = []rule{
	fails(OpBindAddr, every, in(Bound), Idle),
	// also from Idle: the bind inside has succeeded
	fails(OpResolveAddr, every, in(AddrQuery), Bound),
	fails(OpResolveRoute, every, in(RouteQuery), AddrResolved),
	fails(OpSetIBPath, every, in(RouteQuery), AddrResolved),
	fails(OpResolveAddrInfo, ib, in(AddrInfoQuery), Bound),
	fails(OpListen, every, in(Listening), Bound),
	fails(OpConnect, every, in(Connecting), RouteResolved),
	fails(OpAccept, rc, in(Accepting), Failed), // a failing accept rejects the peer
	fails(OpAccept, ud, in(Connected), Failed),
	fails(OpEstablish, rc&ib, in(Connected), Failed), // likewise
}

// eventRules are the events that an identifier waits for, and those that may come at any time.
var eventRules = []rule{
	occurs(KindAddrResolved, every, in(AddrQuery), AddrResolved),
	occurs(KindAddrError, every, in(AddrQuery), Bound),
	occurs(KindAddrError, ud, in(Connecting), Failed), // the peer's queue key contradicts ours
	occurs(KindRouteResolved, every, in(RouteQuery), RouteResolved),
	occurs(KindRouteError, every, in(RouteQuery), AddrResolved),
	occurs(KindConnectRequest, every, in(Listening), stay),
	occurs(KindConnectResponse, rc&ib, in(Connecting), Responded),
	occurs(KindEstablished, every, in(Connecting), Connected),
	occurs(KindEstablished, rc, in(Accepting), Connected),
	occurs(KindRejected, every, answered, Failed),
	occurs(KindUnreachable, every, answered, Failed),
	occurs(KindConnectError, every, answered, Failed),
	// RoCE: the next hop's MAC address changed
	occurs(KindUnreachable, ib, in(RouteResolved, Connected), stay),
	occurs(KindDisconnected, rc&ib, in(Connected, Accepting), PeerDisconnected),
	occurs(KindDisconnected, rc&iw, in(Connected, Accepting), Timewait),
	occurs(KindDisconnected, rc, in(Disconnecting), Timewait),
	occurs(KindTimewaitExit, rc&ib, in(Timewait), stay),
	occurs(KindDeviceRemoval, device, attached, Removed),
	occurs(KindAddrChange, device, attached, stay),
	occurs(KindMulticastJoin, ib&ud&device, attached, stay),
	occurs(KindMulticastError, ib&ud&device, attached, stay),
	occurs(KindAddrInfoResolved, ib, in(AddrInfoQuery), AddrInfoResolved),
	occurs(KindAddrInfoError, ib, in(AddrInfoQuery), Bound),
	occurs(KindUser, every, live, stay),
	occurs(KindInternal, every, live, stay),
}
