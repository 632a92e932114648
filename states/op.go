package states

// Op is a kind of command. There is one for each call of librdmacm. Options and notifications that
// the kernel judges differently have an Op each.
type Op uint8

// The commands.
const (
	OpBindAddr        Op = iota // rdma_bind_addr
	OpResolveAddr               // rdma_resolve_addr
	OpResolveRoute              // rdma_resolve_route
	OpListen                    // rdma_listen
	OpConnect                   // rdma_connect
	OpAccept                    // rdma_accept (valid=1)
	OpReject                    // rdma_reject
	OpEstablish                 // rdma_establish (ACCEPT valid=0, the RTU)
	OpDisconnect                // rdma_disconnect
	OpDestroyID                 // rdma_destroy_id
	OpQuery                     // rdma_get_local_addr, rdma_get_src_port ...: QUERY, QUERY_ROUTE
	OpMigrateID                 // rdma_migrate_id
	OpSetTOS                    // rdma_set_option RDMA_OPTION_ID_TOS
	OpSetReuseAddr              // rdma_set_option RDMA_OPTION_ID_REUSEADDR = 1
	OpClearReuseAddr            // rdma_set_option RDMA_OPTION_ID_REUSEADDR = 0
	OpSetAFOnly                 // rdma_set_option RDMA_OPTION_ID_AFONLY
	OpSetAckTimeout             // rdma_set_option RDMA_OPTION_ID_ACK_TIMEOUT
	OpSetIBPath                 // rdma_set_option RDMA_OPTION_IB_PATH
	OpNotifyCommEst             // rdma_notify IBV_EVENT_COMM_EST
	OpNotifyPathMig             // rdma_notify IBV_EVENT_PATH_MIG
	OpInitQPAttrInit            // rdma_init_qp_attr, IBV_QPS_INIT
	OpInitQPAttrReady           // rdma_init_qp_attr, IBV_QPS_RTR and IBV_QPS_RTS
	OpInitQPAttrOther           // rdma_init_qp_attr, any other state
	OpJoinMulticast             // rdma_join_multicast
	OpLeaveMulticast            // rdma_leave_multicast
	OpResolveAddrInfo           // rdma_resolve_addrinfo (2025)
	OpWriteCMEvent              // rdma_write_cm_event (2025)
	OpCreateQP                  // rdma_create_qp

	// numOps is the number of commands.
	numOps = int(iota)
)
