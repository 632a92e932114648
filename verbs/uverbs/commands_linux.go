package uverbs

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// Here the kernel is an hca.Adapter: each method is one command.

var _ hca.Adapter = (*kernel)(nil)

// Channels opens the descriptors of events.
func (k *kernel) Channels() (hca.Channels, error) {
	ctx, err := callCommand[ask, getContextResp](k, cmdGetContext, ask{})
	if err != nil {
		return k.channels, refusedContext(fmt.Errorf("get_context: %w", err))
	}
	k.channels.Async = int(ctx.AsyncFD)
	channel, err := callCommand[ask, createCompChannelResp](k, cmdCreateCompChannel, ask{})
	if err != nil {
		return k.channels, fmt.Errorf("create_comp_channel: %w", err)
	}
	k.channels.Completions = int(channel.FD)
	err = firstError(unix.SetNonblock(k.channels.Async, true), unix.SetNonblock(k.channels.Completions, true))
	return k.channels, err
}

// Query returns the device's identity and capabilities.
func (k *kernel) Query() (hca.Caps, error) {
	resp, err := callCommand[ask, queryDeviceResp](k, cmdQueryDevice, ask{})
	if err != nil {
		return hca.Caps{}, fmt.Errorf("query_device: %w", err)
	}
	c := hca.Caps{
		GUID: binary.BigEndian.Uint64(resp.NodeGUID[:]), MaxCQE: int(resp.MaxCQE), MaxSRQWR: int(resp.MaxSRQWR),
		MaxCQ: int(resp.MaxCQ), MaxMR: int(resp.MaxMR),
	}
	switch resp.VendorID {
	case rxeVendor:
		c.Attr = verbs.DeviceAttr{MaxSGE: rxeMaxSGE, MaxInline: rxeInline, Immediate: true, Atomics: resp.AtomicCap != 0}
	case siwVendor:
		k.siw, c.Siw, c.IWARP = true, true, true
		c.Attr = verbs.DeviceAttr{MaxSGE: siwMaxSGE, MaxInline: siwMaxInline, NotifiesAll: true, OverlooksFirst: true}
	default:
		return c, &OtherDeviceError{Vendor: resp.VendorID}
	}
	c.Attr.MaxQP = int(resp.MaxQP)
	c.Attr.MaxQPWR = min(int(resp.MaxQPWR), int(resp.MaxCQE)/2)
	c.Attr.MaxSGE = min(c.Attr.MaxSGE, int(resp.MaxSGE))
	c.Attr.MaxRDAtom = int(min(resp.MaxQPRdAtom, 255))
	port, err := callCommand[queryPort, queryPortResp](k, cmdQueryPort, queryPort{PortNum: 1})
	if err != nil {
		return c, fmt.Errorf("query_port: %w", err)
	}
	c.Attr.MaxMessage = port.MaxMsgSz
	if mtu := port.ActiveMTU; !k.siw && mtu >= 1 && mtu <= hca.MTU4096 {
		c.Attr.MaxDatagram = 128 << mtu
	}
	return c, nil
}

const (
	// rxeInline is the inline data of a send queue's elements: as much as fits into 512 bytes with
	// the rest, in round numbers.
	rxeInline = 256
	rxeMaxSGE = rxeInline / 16
)

// NextCompletion reads an event of the completion channel.
func (k *kernel) NextCompletion() (uint64, error) {
	err := readEvent(k.channels.Completions, &k.compEvent)
	return k.compEvent.CQHandle, err
}

// NextEvent reads an asynchronous event.
func (k *kernel) NextEvent() (hca.Event, error) {
	err := readEvent(k.channels.Async, &k.asyncEvent)
	return hca.Event{Type: k.asyncEvent.EventType, Object: k.asyncEvent.Element}, err
}

// AllocPD makes a protection domain.
func (k *kernel) AllocPD() (hca.Handle, error) {
	resp, err := callCommand[ask, allocPDResp](k, cmdAllocPD, ask{})
	if err != nil {
		return 0, err
	}
	return hca.Handle(resp.PDHandle), nil
}

// DeallocPD destroys a protection domain.
func (k *kernel) DeallocPD(pd hca.Handle) error {
	return executeCommand(k, cmdDeallocPD, giveBack{Handle: uint32(pd)})
}

// RegMR registers memory.
func (k *kernel) RegMR(pd hca.Handle, mem []byte, access verbs.Access) (hca.MR, error) {
	addr := addressOf(mem)
	resp, err := callCommand[regMR, regMRResp](k, cmdRegMR, regMR{
		Start: addr, Length: uint64(len(mem)), HCAVA: addr, PDHandle: uint32(pd), AccessFlags: uint32(access),
		Driver: siwRegMR{STagKey: k.stagKey()},
	})
	if err != nil {
		return hca.MR{}, err
	}
	return hca.MR{Handle: hca.Handle(resp.MRHandle), LKey: resp.LKey, RKey: resp.RKey}, nil
}

// DeregMR deregisters memory.
func (k *kernel) DeregMR(mr hca.Handle) error {
	return executeCommand(k, cmdDeregMR, giveBack{Handle: uint32(mr)})
}

// CreateCQ makes a completion queue.
func (k *kernel) CreateCQ(entries int, event uint64) (hca.CQ, error) {
	resp, err := callCommand[createCQ, createCQResp](k, cmdCreateCQ, createCQ{
		UserHandle: event, CQE: uint32(entries), CompChannel: int32(k.channels.Completions),
	})
	if err != nil {
		return hca.CQ{}, err
	}
	cq := hca.CQ{Handle: hca.Handle(resp.CQHandle), Entries: int(resp.CQE)}
	if cq.Queue, err = k.mapCompletions(resp); err != nil {
		_ = k.DestroyCQ(cq.Handle)
	}
	return cq, err
}

// Foresee does nothing: the rings are looked into without a command.
func (k *kernel) Foresee(hca.Handle, hca.Completions, bool) {}

// ReqNotify asks for an event. siw reads in memory whether one is wanted.
func (k *kernel) ReqNotify(cq hca.Handle, queue hca.Completions, solicitedOnly bool) error {
	if s, ok := queue.(*siwCompletions); ok {
		s.arm.Store(siwNotifyAll)
		return nil
	}
	return executeCommand(k, cmdReqNotifyCQ, reqNotifyCQ{CQHandle: uint32(cq), SolicitedOnly: uint32(bitOf(solicitedOnly))})
}

// DestroyCQ destroys a completion queue.
func (k *kernel) DestroyCQ(cq hca.Handle) error {
	_, err := callCommand[destroy, destroyCQResp](k, cmdDestroyCQ, destroy{Handle: uint32(cq)})
	return err
}

// CreateSRQ makes a shared receive queue.
func (k *kernel) CreateSRQ(pd hca.Handle, maxWR int, event uint64) (hca.SRQ, error) {
	resp, err := callCommand[createSRQ, createSRQResp](k, cmdCreateSRQ, createSRQ{
		UserHandle: event, PDHandle: uint32(pd), MaxWR: uint32(maxWR), MaxSGE: 1,
	})
	if err != nil {
		return hca.SRQ{}, err
	}
	srq := hca.SRQ{Handle: hca.Handle(resp.SRQHandle)}
	if srq.Queue, err = k.mapShared(resp); err != nil {
		_ = k.DestroySRQ(srq.Handle)
	}
	return srq, err
}

// ArmSRQ sets the limit.
func (k *kernel) ArmSRQ(srq hca.Handle, limit int) error {
	return executeCommand(k, cmdModifySRQ, modifySRQ{SRQHandle: uint32(srq), AttrMask: srqAttrLimit, SRQLimit: uint32(limit)})
}

// DestroySRQ destroys a shared receive queue.
func (k *kernel) DestroySRQ(srq hca.Handle) error {
	_, err := callCommand[destroy, destroyed](k, cmdDestroySRQ, destroy{Handle: uint32(srq)})
	return err
}

// CreateQP makes a queue pair.
func (k *kernel) CreateQP(i *hca.QPInit) (hca.QP, error) {
	req := createQP{
		UserHandle: i.Event, PDHandle: uint32(i.PD), SendCQHandle: uint32(i.SendCQ), RecvCQHandle: uint32(i.RecvCQ),
		MaxSendWR: uint32(max(i.MaxSendWR, 1)), MaxRecvWR: uint32(max(i.MaxRecvWR, 1)),
		MaxSendSGE: uint32(max(i.MaxSGE, 1)), MaxRecvSGE: 1, MaxInlineData: uint32(i.MaxInline), QPType: uint8(i.Type),
	}
	if i.HasSRQ {
		req.IsSRQ, req.SRQHandle, req.MaxRecvWR, req.MaxRecvSGE = 1, uint32(i.SRQ), 0, 0
	}
	resp, err := callCommand[createQP, createQPResp](k, cmdCreateQP, req)
	if err != nil {
		return hca.QP{}, err
	}
	made := hca.QP{Handle: hca.Handle(resp.QPHandle), Num: resp.QPN}
	if err = k.mapQueues(resp, i, &made); err != nil {
		_ = k.DestroyQP(made.Handle)
		for _, q := range []closable{made.Sends, made.Recvs} {
			if q != nil {
				_ = q.Close()
			}
		}
	}
	return made, err
}

// closable is a queue.
type closable interface{ Close() error }

// ModifyQP changes a queue pair.
func (k *kernel) ModifyQP(qp hca.Handle, attr *verbs.QPAttr, mask verbs.QPAttrMask) error {
	return executeCommand(k, cmdModifyQP, modifyRequest(uint32(qp), attr, mask))
}

// DestroyQP destroys a queue pair.
func (k *kernel) DestroyQP(qp hca.Handle) error {
	_, err := callCommand[destroy, destroyed](k, cmdDestroyQP, destroy{Handle: uint32(qp)})
	return err
}

// Attach joins a multicast group.
func (k *kernel) Attach(qp hca.Handle, gid [16]byte, lid uint16) error {
	return executeCommand(k, cmdAttachMcast, attachMcast{GID: gid, QPHandle: uint32(qp), MLID: lid})
}

// Detach leaves a multicast group.
func (k *kernel) Detach(qp hca.Handle, gid [16]byte, lid uint16) error {
	return executeCommand(k, cmdDetachMcast, attachMcast{GID: gid, QPHandle: uint32(qp), MLID: lid})
}

// Announce makes the kernel look into a send queue.
func (k *kernel) Announce(qp hca.Handle, _ hca.SendQueue) error { return k.ringDoorbell(uint32(qp)) }

// Connected asks siw for the queue pair's state. Unless that is RTS, siw refuses the doorbell
// command, even when nothing was posted.
func (k *kernel) Connected(qp hca.Handle) bool { return k.ringDoorbell(uint32(qp)) == nil }

// CreateAH makes an address handle.
func (k *kernel) CreateAH(pd hca.Handle, attr *verbs.AHAttr) (hca.AH, error) {
	resp, err := callCommand[createAH, createAHResp](k, cmdCreateAH, createAH{PDHandle: uint32(pd), Attr: hca.AHAttrOf(attr)})
	if err != nil {
		return hca.AH{}, err
	}
	return hca.AH{Handle: hca.Handle(resp.AHHandle), Num: resp.AHNum}, nil
}

// DestroyAH destroys an address handle.
func (k *kernel) DestroyAH(ah hca.Handle) error {
	return executeCommand(k, cmdDestroyAH, giveBack{Handle: uint32(ah)})
}

// Aside is aside.
func (k *kernel) Aside(use func(hca.Adapter) error) error {
	return k.useOffLoop(func(k *kernel) error { return use(k) })
}
