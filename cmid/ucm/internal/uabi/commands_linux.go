package uabi

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Sockaddr is a socket address as a command carries it: Len bytes of Data.
type Sockaddr struct {
	Len  uint16
	Data [128]byte
}

// none is the response of a command without one.
type none struct{}

// CreateID is CREATE_ID. uid 0 makes an identifier for which nothing is ever reported.
func (f *File) CreateID(uid uint64, ps uint16, qpType uint8) (id uint32, err error) {
	var out CreateIDResp
	err = executeCommand(f, CommandCreateID, &CreateID{UID: uid, PS: ps, QPType: qpType}, 8, &out)
	return out.ID, err
}

// DestroyID is DESTROY_ID. It may wait up to 100 s for a connection that is half open. reported is
// how many of the identifier's events were fetched; none comes afterwards.
func (f *File) DestroyID(id uint32) (reported uint32, err error) {
	var out DestroyIDResp
	err = executeCommand(f, CommandDestroyID, &DestroyID{ID: id}, 0, &out)
	return out.EventsReported, err
}

// Bind is BIND.
func (f *File) Bind(id uint32, addr *Sockaddr) error {
	return executeCommand(f, CommandBind, &Bind{ID: id, AddrSize: addr.Len, Addr: addr.Data}, noResponse, new(none))
}

// ResolveAddr is RESOLVE_ADDR. Where no source is wanted src is zero, its bytes too: the kernel
// looks at them whatever its size.
func (f *File) ResolveAddr(id uint32, src, dst *Sockaddr, timeoutMs uint32) error {
	in := ResolveAddr{ID: id, TimeoutMs: timeoutMs, SrcSize: src.Len, DstSize: dst.Len, SrcAddr: src.Data, DstAddr: dst.Data}
	return executeCommand(f, CommandResolveAddr, &in, noResponse, new(none))
}

// ResolveRoute is RESOLVE_ROUTE; EINVAL without a timeout.
func (f *File) ResolveRoute(id, timeoutMs uint32) error {
	return executeCommand(f, CommandResolveRoute, &ResolveRoute{ID: id, TimeoutMs: timeoutMs}, noResponse, new(none))
}

// NoDevice is the IBDevIndex of an answer that has none: the kernel is older than 5.9, or the
// identifier has no device.
const NoDevice uint32 = 1<<32 - 1

// QueryAddr is QUERY of RDMA_USER_CM_QUERY_ADDR.
func (f *File) QueryAddr(id uint32) (QueryAddrResp, error) { return f.queryOption(id, QueryAddr) }

// QueryGID is QUERY of RDMA_USER_CM_QUERY_GID: the addresses as sockaddr_ib.
func (f *File) QueryGID(id uint32) (QueryAddrResp, error) { return f.queryOption(id, QueryGID) }

func (f *File) queryOption(id, option uint32) (out QueryAddrResp, err error) {
	out.IBDevIndex = NoDevice
	err = executeCommand(f, CommandQuery, &Query{ID: id, Option: option}, 0, &out)
	if limit := uint16(len(out.SrcAddr)); err == nil && (out.SrcSize > limit || out.DstSize > limit) {
		err = &ResponseError{CommandQuery, fmt.Sprintf("addresses of %d and %d bytes", out.SrcSize, out.DstSize)}
	}
	return out, err
}

// QueryPath is QUERY of RDMA_USER_CM_QUERY_PATH: the first records.
func (f *File) QueryPath(id uint32) ([]IBPathRecData, error) {
	var out struct {
		QueryPathResp
		Records [maxPaths]IBPathRecData
	}
	if err := executeCommand(f, CommandQuery, &Query{ID: id, Option: QueryPath}, 0, &out); err != nil {
		return nil, err
	}
	return append([]IBPathRecData(nil), out.Records[:min(out.NumPaths, maxPaths)]...), nil
}

// Connect is CONNECT. On iWARP it waits for TCP's handshake, up to 127 s.
func (f *File) Connect(in *Connect) error {
	return executeCommand(f, CommandConnect, in, noResponse, new(none))
}

// Listen is LISTEN. A backlog of 0 or less is the maximum.
func (f *File) Listen(id uint32, backlog int32) error {
	return executeCommand(f, CommandListen, &Listen{ID: id, Backlog: uint32(backlog)}, noResponse, new(none))
}

// Accept is ACCEPT: with ConnParam.Valid 0 the RTU of the active side. A failing one rejects the
// request.
func (f *File) Accept(in *Accept) error {
	return executeCommand(f, CommandAccept, in, noResponse, new(none))
}

// Reject is REJECT.
func (f *File) Reject(in *Reject) error {
	return executeCommand(f, CommandReject, in, noResponse, new(none))
}

// Disconnect is DISCONNECT. On iWARP it may wait, while the peer's reply is outstanding, for 10 s.
func (f *File) Disconnect(id uint32) error {
	return executeCommand(f, CommandDisconnect, &Disconnect{ID: id}, noResponse, new(none))
}

// InitQPAttr is INIT_QP_ATTR.
func (f *File) InitQPAttr(id, state uint32) (out QPAttr, err error) {
	err = executeCommand(f, CommandInitQPAttr, &InitQPAttr{ID: id, QPState: state}, 0, &out)
	return out, err
}

// GetEvent is GET_EVENT: EAGAIN when there is none.
func (f *File) GetEvent(out *EventResp) error {
	*out = EventResp{} // older kernels leave the end of it as it is
	return executeCommand(f, CommandGetEvent, &GetEvent{}, 0, out)
}

// Notify is NOTIFY.
func (f *File) Notify(id, event uint32) error {
	return executeCommand(f, CommandNotify, &Notify{ID: id, Event: event}, noResponse, new(none))
}

// JoinMulticast is JOIN_MCAST. group is the membership's number, in a separate space; uid is in
// its events.
func (f *File) JoinMulticast(uid uint64, id uint32, addr *Sockaddr, flags uint16) (group uint32, err error) {
	var out CreateIDResp
	in := JoinMulticast{UID: uid, ID: id, AddrSize: addr.Len, JoinFlags: flags, Addr: addr.Data}
	err = executeCommand(f, CommandJoinMulticast, &in, 0, &out)
	return out.ID, err
}

// LeaveMulticast is LEAVE_MCAST.
func (f *File) LeaveMulticast(group uint32) (reported uint32, err error) {
	var out DestroyIDResp
	err = executeCommand(f, CommandLeaveMulticast, &DestroyID{ID: group}, 0, &out)
	return out.EventsReported, err
}

// MigrateID is MIGRATE_ID: f takes over id from another channel, with its events that were not
// fetched. Others may read from that channel or close it concurrently. EBADF when it was closed
// before. Any goroutine.
func (f *File) MigrateID(from *File, id uint32) (reported uint32, err error) {
	var out MigrateResp
	err = from.k.Lend(func(fd int) error {
		return executeCommand(f, CommandMigrateID, &MigrateID{ID: id, FD: uint32(fd)}, 0, &out)
	})
	return out.EventsReported, err
}

// ResolveIBService is RESOLVE_IB_SERVICE (2025).
func (f *File) ResolveIBService(in *ResolveIBService) error {
	return asNotInKernel(executeCommand(f, CommandResolveIBService, in, noResponse, new(none)))
}

// WriteCMEvent is WRITE_CM_EVENT (2025).
func (f *File) WriteCMEvent(in *WriteCMEvent) error {
	return asNotInKernel(executeCommand(f, CommandWriteCMEvent, in, noResponse, new(none)))
}

// asNotInKernel replaces EINVAL, which a kernel answers to a command that it does not have and to a
// bad argument alike.
func asNotInKernel(err error) error {
	if err == unix.EINVAL { //nolint:errorlint // executeCommand returns bare errnos
		return &NotInKernelError{unix.EINVAL}
	}
	return err
}

// NotInKernelError reports that the kernel refused a command that only kernels since 2025 have, in
// the way in which it refuses unknown ones. errors.Is finds EOPNOTSUPP, and the EINVAL that it
// was.
type NotInKernelError struct{ Errno unix.Errno }

// Error names the required kernel.
func (e *NotInKernelError) Error() string {
	return "not supported by this kernel: it needs Linux 6.17 or later (" + e.Errno.Error() + ")"
}

// Unwrap gives both errnos.
func (e *NotInKernelError) Unwrap() []error { return []error{unix.EOPNOTSUPP, e.Errno} }
