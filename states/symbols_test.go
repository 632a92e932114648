package states

import (
	"slices"
	"strings"
	"testing"
)

// kernelEvents is enum rdma_cm_event_type, in order.
const kernelEvents = `ADDR_RESOLVED ADDR_ERROR ROUTE_RESOLVED ROUTE_ERROR CONNECT_REQUEST CONNECT_RESPONSE CONNECT_ERROR
	UNREACHABLE REJECTED ESTABLISHED DISCONNECTED DEVICE_REMOVAL MULTICAST_JOIN MULTICAST_ERROR ADDR_CHANGE TIMEWAIT_EXIT
	ADDRINFO_RESOLVED ADDRINFO_ERROR USER INTERNAL`

// TestEveryEventHasAKind: names are mechanical, numbers are the uABI's, and every event does something somewhere.
func TestEveryEventHasAKind(t *testing.T) {
	names := strings.Fields(kernelEvents)
	if len(names) != NumKernelKinds {
		t.Fatalf("%d names, %d kinds", len(names), NumKernelKinds)
	}
	for i, name := range names {
		k := Kind(i)
		if k.C() != "RDMA_CM_EVENT_"+name {
			t.Errorf("kind %d is %s, the kernel's is %s", i, k.C(), name)
		}
		if got, want := strings.ToLower(k.String()), strings.ToLower(strings.ReplaceAll(name, "_", "")); got != want {
			t.Errorf("%s is called %v", name, k)
		}
		allowed := false
		cells(func(f Flavor, s State, in Input) {
			_, v := Step(f, s, in)
			allowed = allowed || in == Occurred(k) && v == Allow
		})
		if !allowed {
			t.Errorf("%v is ignored everywhere", k)
		}
	}
}

// Where the calls of librdmacm that are not commands to an identifier's state machine live.
const (
	channel = "an event channel, not an identifier"
	life    = "an identifier is born outside its state machine: Idle, or ConnectRequested"
	library = "a composition of other calls, or bookkeeping of the library"
	data    = "data path: the queue pair's business"
	ece     = "connection parameters, no state"
)

// calls is every call of librdmacm's CM core and verbs wrappers: the Ops it asks, or why it asks none.
var calls = map[string]struct {
	ops  []Op
	none string
}{
	"rdma_create_event_channel":  {none: channel},
	"rdma_destroy_event_channel": {none: channel},
	"rdma_get_cm_event":          {none: channel},
	"rdma_ack_cm_event":          {none: channel},
	"rdma_event_str":             {none: "Kind.C"},
	"rdma_create_id":             {none: life},
	"rdma_get_request":           {none: life},
	"rdma_destroy_id":            {ops: []Op{OpDestroyID}},
	"rdma_bind_addr":             {ops: []Op{OpBindAddr}},
	"rdma_resolve_addr":          {ops: []Op{OpResolveAddr}},
	"rdma_resolve_route":         {ops: []Op{OpResolveRoute}},
	"rdma_connect":               {ops: []Op{OpConnect}},
	"rdma_listen":                {ops: []Op{OpListen}},
	"rdma_accept":                {ops: []Op{OpAccept}},
	"rdma_reject":                {ops: []Op{OpReject}},
	"rdma_reject_ece":            {ops: []Op{OpReject}},
	"rdma_establish":             {ops: []Op{OpEstablish}},
	"rdma_disconnect":            {ops: []Op{OpDisconnect}},
	"rdma_notify":                {ops: []Op{OpNotifyCommEst, OpNotifyPathMig}},
	"rdma_join_multicast":        {ops: []Op{OpJoinMulticast}},
	"rdma_join_multicast_ex":     {ops: []Op{OpJoinMulticast}},
	"rdma_leave_multicast":       {ops: []Op{OpLeaveMulticast}},
	"rdma_migrate_id":            {ops: []Op{OpMigrateID}},
	"rdma_set_option":            {ops: []Op{OpSetTOS, OpSetReuseAddr, OpClearReuseAddr, OpSetAFOnly, OpSetAckTimeout, OpSetIBPath}},
	"rdma_resolve_addrinfo":      {ops: []Op{OpResolveAddrInfo}},
	"rdma_write_cm_event":        {ops: []Op{OpWriteCMEvent}},
	"rdma_query_addrinfo":        {ops: []Op{OpQuery}},
	"rdma_get_src_port":          {ops: []Op{OpQuery}},
	"rdma_get_dst_port":          {ops: []Op{OpQuery}},
	"rdma_get_local_addr":        {ops: []Op{OpQuery}},
	"rdma_get_peer_addr":         {ops: []Op{OpQuery}},
	"rdma_init_qp_attr":          {ops: []Op{OpInitQPAttrInit, OpInitQPAttrReady, OpInitQPAttrOther}},
	"rdma_create_qp":             {ops: []Op{OpCreateQP}},
	"rdma_create_qp_ex":          {ops: []Op{OpCreateQP}},
	"rdma_create_ep":             {none: library},
	"rdma_destroy_ep":            {none: library},
	"rdma_getaddrinfo":           {none: "needs no identifier"},
	"rdma_freeaddrinfo":          {none: "needs no identifier"},
	"rdma_get_devices":           {none: "needs no identifier"},
	"rdma_free_devices":          {none: "needs no identifier"},
	"rdma_set_local_ece":         {none: ece},
	"rdma_get_remote_ece":        {none: ece},
	"rdma_destroy_qp":            {none: data},
	"rdma_create_srq":            {none: data},
	"rdma_create_srq_ex":         {none: data},
	"rdma_destroy_srq":           {none: data},
	"rdma_seterrno":              {none: library},
	"rdma_reg_msgs":              {none: data},
	"rdma_reg_read":              {none: data},
	"rdma_reg_write":             {none: data},
	"rdma_dereg_mr":              {none: data},
	"rdma_post_recvv":            {none: data},
	"rdma_post_sendv":            {none: data},
	"rdma_post_readv":            {none: data},
	"rdma_post_writev":           {none: data},
	"rdma_post_recv":             {none: data},
	"rdma_post_send":             {none: data},
	"rdma_post_read":             {none: data},
	"rdma_post_write":            {none: data},
	"rdma_post_ud_send":          {none: data},
	"rdma_get_send_comp":         {none: data},
	"rdma_get_recv_comp":         {none: data},
}

// exported is what librdmacm.so.1 exports (RDMACM_1.0 to 1.5) besides rsocket, and what its headers define inline.
const exported = `
	rdma_create_event_channel rdma_destroy_event_channel rdma_create_id rdma_destroy_id rdma_bind_addr rdma_resolve_addr
	rdma_resolve_route rdma_connect rdma_listen rdma_get_request rdma_accept rdma_reject rdma_reject_ece rdma_establish
	rdma_disconnect rdma_notify rdma_get_cm_event rdma_ack_cm_event rdma_join_multicast rdma_join_multicast_ex
	rdma_leave_multicast rdma_migrate_id rdma_set_option rdma_create_ep rdma_destroy_ep rdma_resolve_addrinfo
	rdma_query_addrinfo rdma_write_cm_event rdma_set_local_ece rdma_get_remote_ece
	rdma_create_qp rdma_create_qp_ex rdma_destroy_qp rdma_create_srq rdma_create_srq_ex rdma_destroy_srq rdma_init_qp_attr
	rdma_seterrno rdma_reg_msgs rdma_reg_read rdma_reg_write rdma_dereg_mr rdma_post_recvv rdma_post_sendv rdma_post_readv
	rdma_post_writev rdma_post_recv rdma_post_send rdma_post_read rdma_post_write rdma_post_ud_send rdma_get_send_comp
	rdma_get_recv_comp
	rdma_getaddrinfo rdma_freeaddrinfo rdma_get_devices rdma_free_devices rdma_get_src_port rdma_get_dst_port rdma_event_str
	rdma_get_local_addr rdma_get_peer_addr`

// TestEveryCallHasAnOp walks librdmacm's symbols (rsocket apart, which is a library above this one).
func TestEveryCallHasAnOp(t *testing.T) {
	symbols := strings.Fields(exported)
	asked := map[Op]bool{}
	for _, symbol := range symbols {
		call, ok := calls[symbol]
		if !ok || (len(call.ops) == 0) == (call.none == "") {
			t.Errorf("%s: want Ops or a reason to have none", symbol)
		}
		for _, op := range call.ops {
			asked[op] = true
			if !slices.Contains(symbols, op.C()) || !slices.Contains(calls[op.C()].ops, op) {
				t.Errorf("%v calls itself %s in C", op, op.C())
			}
		}
	}
	if len(symbols) != len(calls) {
		t.Errorf("%d symbols, %d entries", len(symbols), len(calls))
	}
	for op := range Op(NumOps) {
		if !asked[op] {
			t.Errorf("%v is no call of librdmacm", op)
		}
	}
}
