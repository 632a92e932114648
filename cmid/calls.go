package cmid

import "time"

// The plain calls, one to one with librdmacm. Each returns when the command was executed. Where the
// outcome is an event, it returns when the command has begun, and the event comes from
// Channel.GetEvent. The error is a Failure.

// BindAddr is rdma_bind_addr(3). Info has the port that was chosen, and the device.
func (id *ID) BindAddr(a Addr) error { return id.execute(&BindAddr{Addr: a}) }

// ResolveAddr is rdma_resolve_addr(3): AddrResolved or AddrError follows. A zero src is C's NULL.
func (id *ID) ResolveAddr(src, dst Addr, timeout time.Duration) error {
	return id.execute(&ResolveAddr{Src: src, Dst: dst, Timeout: timeout})
}

// ResolveRoute is rdma_resolve_route(3): RouteResolved or RouteError follows.
func (id *ID) ResolveRoute(timeout time.Duration) error {
	return id.execute(&ResolveRoute{Timeout: timeout})
}

// Listen is rdma_listen(3).
func (id *ID) Listen(backlog int) error { return id.execute(&Listen{Backlog: backlog}) }

// Connect is rdma_connect(3): Established, Rejected, Unreachable or ConnectError follows.
func (id *ID) Connect(privateData []byte, p *ConnParam) error {
	return id.execute(&Connect{PrivateData: privateData, Param: p})
}

// Accept is rdma_accept(3): Established follows. A nil p is C's NULL.
func (id *ID) Accept(privateData []byte, p *ConnParam) error {
	return id.execute(&Accept{PrivateData: privateData, Param: p})
}

// Reject is rdma_reject(3).
func (id *ID) Reject(privateData []byte) error {
	return id.execute(&Reject{PrivateData: privateData})
}

// Establish is rdma_establish(3), for owners that drive their queue pair themselves.
func (id *ID) Establish() error { return id.execute(&Establish{}) }

// Disconnect is rdma_disconnect(3): Disconnected follows when the connection was established.
func (id *ID) Disconnect() error { return id.execute(&Disconnect{}) }

// SetOption is rdma_set_option(3).
func (id *ID) SetOption(o Option, value int) error {
	return id.execute(&SetOption{Option: o, Value: value})
}

// Notify is rdma_notify(3) with IBV_EVENT_COMM_EST, or with IBV_EVENT_PATH_MIG.
func (id *ID) Notify(pathMigrated bool) error {
	return id.execute(&Notify{PathMigrated: pathMigrated})
}

// JoinMulticast is rdma_join_multicast(3): MulticastJoin or MulticastError follows.
func (id *ID) JoinMulticast(a Addr) error { return id.execute(&JoinMulticast{Addr: a}) }

// JoinMulticastSendOnly is rdma_join_multicast_ex(3) with RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER.
func (id *ID) JoinMulticastSendOnly(a Addr) error {
	return id.execute(&JoinMulticast{Addr: a, SendOnly: true})
}

// LeaveMulticast is rdma_leave_multicast(3).
func (id *ID) LeaveMulticast(a Addr) error { return id.execute(&LeaveMulticast{Addr: a}) }

// SetIBPath is rdma_set_option(3) with RDMA_OPTION_IB_PATH, in place of ResolveRoute:
// RouteResolved follows.
func (id *ID) SetIBPath(paths []byte) error { return id.execute(&SetIBPath{Paths: paths}) }

// ResolveIBService is rdma_resolve_addrinfo(3) with RAI_SA: AddrInfoResolved or AddrInfoError
// follows.
func (id *ID) ResolveIBService(serviceID uint64, name string) error {
	return id.execute(&ResolveIBService{ServiceID: serviceID, Name: name})
}

// WriteCMEvent is rdma_write_cm_event(3): User follows.
func (id *ID) WriteCMEvent(arg uint64) error { return id.execute(&WriteCMEvent{Arg: arg}) }

// Destroy is rdma_destroy_id(3). It never waits for events to be acknowledged. No event of the
// identifier is delivered after it. An error means that the device still holds the identifier; if
// the device needs time, Closed.Err reports it. The identifier can no longer be used.
func (id *ID) Destroy() error { return id.execute(&DestroyID{}) }

// LocalAddr is rdma_get_local_addr(3).
func (id *ID) LocalAddr() Addr { return id.Info().Local }

// PeerAddr is rdma_get_peer_addr(3).
func (id *ID) PeerAddr() Addr { return id.Info().Peer }

// SrcPort is rdma_get_src_port(3), in host byte order.
func (id *ID) SrcPort() uint16 { return id.Info().Local.Port() }

// DstPort is rdma_get_dst_port(3), in host byte order.
func (id *ID) DstPort() uint16 { return id.Info().Peer.Port() }

func (id *ID) execute(cmd Command) (err error) {
	id.Do(cmd, func(ev Event) {
		switch ev := ev.(type) {
		case Failure:
			err = ev
		case *Closed:
			err = ev.Err
		}
	})
	return err
}
