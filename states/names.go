package states

import "strconv"

// stateInfo describes each state: its short name, the kernel's, its meaning, and the first words of
// a refusal.
var stateInfo = [NumStates]struct{ name, kernel, meaning, now string }{
	Idle:             {"idle", "IDLE", "new, without an address", "not bound yet"},
	Bound:            {"bound", "ADDR_BOUND", "has a local address and port, perhaps a device", "bound, but nothing is resolved"},
	AddrQuery:        {"addr-query", "ADDR_QUERY", "waits for AddrResolved or AddrError", "the address is still being resolved"},
	AddrResolved:     {"addr-resolved", "ADDR_RESOLVED", "has a device and a source address", "the address is resolved, the route is not"},
	RouteQuery:       {"route-query", "ROUTE_QUERY", "waits for RouteResolved or RouteError", "the route is still being resolved"},
	RouteResolved:    {"route-resolved", "ROUTE_RESOLVED", "may connect", "address and route are resolved"},
	Listening:        {"listening", "LISTEN", "receives ConnectRequest events, each with a new identifier", "it listens"},
	Connecting:       {"connecting", "CONNECT", "request sent, waits for the answer", "it is connecting"},
	ConnectRequested: {"connect-requested", "CONNECT", "born of a ConnectRequest, waits for Accept or Reject", "a request waits for Accept or Reject"},
	Responded:        {"responded", "CONNECT", "reply received, Establish is due (InfiniBand with Manual)", "the peer has replied and Establish is due"},
	Accepting:        {"accepting", "CONNECT", "reply sent, waits to be established", "accepted, and not established yet"},
	Connected:        {"connected", "CONNECT", "established; a datagram identifier: resolved or accepted", "it is connected"},
	Disconnecting:    {"disconnecting", "CONNECT", "own disconnect sent, waits for Disconnected", "it is disconnecting"},
	PeerDisconnected: {"peer-disconnected", "DISCONNECT", "the peer disconnected, the answering Disconnect is due", "the peer has disconnected and Disconnect is due"},
	Timewait:         {"timewait", "DISCONNECT", "disconnected by both sides; on iWARP closed, where the kernel still says CONNECT", "it is disconnected"},
	Failed:           {"failed", "CONNECT", "rejected, unreachable or aborted; only DestroyID helps", "the connection has failed and only DestroyID helps"},
	Removed:          {"device-removal", "DEVICE_REMOVAL", "its device is gone; only DestroyID helps", "its device is gone and only DestroyID helps"},
	Destroying:       {"destroying", "DESTROYING", "on its way out; nothing is legal", "it is being destroyed"},
	AddrInfoQuery:    {"addrinfo-query", "ADDRINFO_QUERY", "waits for AddrInfoResolved or AddrInfoError (kernels of 2025 and later)", "the service is still being resolved"},
	AddrInfoResolved: {"addrinfo-resolved", "ADDRINFO_RESOLVED", "knows the addresses of a service (kernels of 2025 and later)", "the service is resolved, the route is not"},
}

// String returns the short name: "idle", "addr-resolved".
func (s State) String() string {
	if int(s) < NumStates {
		return stateInfo[s].name
	}
	return "State(" + strconv.Itoa(int(s)) + ")"
}

// MarshalText returns String's text.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Kernel returns the name in the kernel's enum rdma_cm_state, as `rdma resource show cm_id` prints
// it: "IDLE", "ADDR_RESOLVED".
func (s State) Kernel() string {
	if int(s) < NumStates {
		return stateInfo[s].kernel
	}
	return ""
}

// Meaning describes the state in half a sentence.
func (s State) Meaning() string {
	if int(s) < NumStates {
		return stateInfo[s].meaning
	}
	return ""
}

// opInfo describes each command: its name, the call of librdmacm (also its manual page), and its
// precondition.
var opInfo = [numOps]struct{ name, c, need string }{
	OpBindAddr:        {"BindAddr", "rdma_bind_addr", "BindAddr needs a new identifier"},
	OpResolveAddr:     {"ResolveAddr", "rdma_resolve_addr", "ResolveAddr needs a new or bound identifier"},
	OpResolveRoute:    {"ResolveRoute", "rdma_resolve_route", "ResolveRoute follows AddrResolved, once"},
	OpListen:          {"Listen", "rdma_listen", "Listen needs a bound identifier, fresh from BindAddr"},
	OpConnect:         {"Connect", "rdma_connect", "Connect follows RouteResolved, once per identifier"},
	OpAccept:          {"Accept", "rdma_accept", "Accept answers a ConnectRequest, once, on the identifier that came with it"},
	OpReject:          {"Reject", "rdma_reject", "Reject answers a ConnectRequest on the identifier that came with it"},
	OpEstablish:       {"Establish", "rdma_establish", "Establish follows ConnectResponse"},
	OpDisconnect:      {"Disconnect", "rdma_disconnect", "Disconnect needs a connection"},
	OpDestroyID:       {"DestroyID", "rdma_destroy_id", "DestroyID is asked once"},
	OpQuery:           {"Query", "rdma_get_local_addr", "Query needs a live identifier"},
	OpMigrateID:       {"MigrateID", "rdma_migrate_id", "MigrateID needs a live identifier"},
	OpSetTOS:          {"SetTOS", "rdma_set_option", "SetTOS needs a live identifier"},
	OpSetReuseAddr:    {"SetReuseAddr", "rdma_set_option", "SetReuseAddr needs an identifier that does not listen"},
	OpClearReuseAddr:  {"ClearReuseAddr", "rdma_set_option", "ClearReuseAddr goes before BindAddr"},
	OpSetAFOnly:       {"SetAFOnly", "rdma_set_option", "SetAFOnly goes before Listen and ResolveAddr"},
	OpSetAckTimeout:   {"SetAckTimeout", "rdma_set_option", "SetAckTimeout needs a connected (RC) identifier"},
	OpSetIBPath:       {"SetIBPath", "rdma_set_option", "SetIBPath follows AddrResolved, in place of ResolveRoute"},
	OpNotifyCommEst:   {"NotifyCommEst", "rdma_notify", "NotifyCommEst needs a connection that is accepted and not established"},
	OpNotifyPathMig:   {"NotifyPathMig", "rdma_notify", "NotifyPathMig needs an established connection"},
	OpInitQPAttrInit:  {"InitQPAttrInit", "rdma_init_qp_attr", "the attributes need a device and a live connection"},
	OpInitQPAttrReady: {"InitQPAttrReady", "rdma_init_qp_attr", "the attributes need a device and the peer's part of the connection"},
	OpInitQPAttrOther: {"InitQPAttrOther", "rdma_init_qp_attr", "once connecting there are attributes for INIT, RTR and RTS only"},
	OpJoinMulticast:   {"JoinMulticast", "rdma_join_multicast", "JoinMulticast needs a datagram identifier with a device, bound or with its address resolved"},
	OpLeaveMulticast:  {"LeaveMulticast", "rdma_leave_multicast", "LeaveMulticast needs a membership"},
	OpResolveAddrInfo: {"ResolveAddrInfo", "rdma_resolve_addrinfo", "ResolveAddrInfo needs an identifier bound to a device"},
	OpWriteCMEvent:    {"WriteCMEvent", "rdma_write_cm_event", "WriteCMEvent needs a live identifier"},
	OpCreateQP:        {"CreateQP", "rdma_create_qp", "CreateQP needs a device and a live connection"},
}

// String returns the command's name: "BindAddr".
func (o Op) String() string {
	if int(o) < numOps {
		return opInfo[o].name
	}
	return "Op(" + strconv.Itoa(int(o)) + ")"
}

// MarshalText returns String's text.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// C returns the call of librdmacm: "rdma_bind_addr". Its manual page has the same name, section 3.
func (o Op) C() string {
	if int(o) < numOps {
		return opInfo[o].c
	}
	return ""
}

// kindNames has the kernel's 20 in its order.
var kindNames = [NumKernelKinds]struct{ name, c string }{
	KindAddrResolved:     {"AddrResolved", "ADDR_RESOLVED"},
	KindAddrError:        {"AddrError", "ADDR_ERROR"},
	KindRouteResolved:    {"RouteResolved", "ROUTE_RESOLVED"},
	KindRouteError:       {"RouteError", "ROUTE_ERROR"},
	KindConnectRequest:   {"ConnectRequest", "CONNECT_REQUEST"},
	KindConnectResponse:  {"ConnectResponse", "CONNECT_RESPONSE"},
	KindConnectError:     {"ConnectError", "CONNECT_ERROR"},
	KindUnreachable:      {"Unreachable", "UNREACHABLE"},
	KindRejected:         {"Rejected", "REJECTED"},
	KindEstablished:      {"Established", "ESTABLISHED"},
	KindDisconnected:     {"Disconnected", "DISCONNECTED"},
	KindDeviceRemoval:    {"DeviceRemoval", "DEVICE_REMOVAL"},
	KindMulticastJoin:    {"MulticastJoin", "MULTICAST_JOIN"},
	KindMulticastError:   {"MulticastError", "MULTICAST_ERROR"},
	KindAddrChange:       {"AddrChange", "ADDR_CHANGE"},
	KindTimewaitExit:     {"TimewaitExit", "TIMEWAIT_EXIT"},
	KindAddrInfoResolved: {"AddrInfoResolved", "ADDRINFO_RESOLVED"},
	KindAddrInfoError:    {"AddrInfoError", "ADDRINFO_ERROR"},
	KindUser:             {"User", "USER"},
	KindInternal:         {"Internal", "INTERNAL"},
}

// ownKinds has ours, from KindBound on.
var ownKinds = [...]string{
	"Bound", "Listening", "CommandFailed", "Done", "QPFailed", "ListenFailed", "NeighbourChanged", "Closed",
	"Received", "Sent", "SendFailed", "Writable", "MemoryAllocated", "Granted", "Revoked", "ReadDone", "WriteDone",
	"AccessError", "AtomicDone",
}

// String returns the event's name: "AddrResolved"; "Bound" for one of this package.
func (k Kind) String() string {
	if int(k) < NumKernelKinds {
		return kindNames[k].name
	}
	if i := int(k) - int(KindBound); i >= 0 && i < len(ownKinds) {
		return ownKinds[i]
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// MarshalText returns String's text.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// C returns the kernel's name: "RDMA_CM_EVENT_ADDR_RESOLVED"; "" for an event of this package.
func (k Kind) C() string {
	if int(k) < NumKernelKinds {
		return "RDMA_CM_EVENT_" + kindNames[k].c
	}
	return ""
}
