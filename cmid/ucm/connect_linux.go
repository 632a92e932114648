package ucm

import (
	"cmp"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// connParam returns a connection's parameters as the kernel takes them: the requested ones, and
// librdmacm's defaults for the others. EINVAL for more reads than the device can.
func (id *driverID) connParam(p *cmid.ConnParam, in, out uint8, private []byte, limit int) (c uabi.ConnParam, ece uabi.ECE, err error) {
	if p == nil {
		p = &cmid.ConnParam{ResponderResources: deviceMax, InitiatorDepth: deviceMax, RetryCount: retries, RNRRetryCount: rnrMax}
	}
	c = uabi.ConnParam{
		QPNum: p.QPNum, QKey: p.QKey, SRQ: boolBit(p.SRQ), FlowControl: boolBit(p.FlowControl), Valid: 1,
		ResponderResources: p.ResponderResources, InitiatorDepth: p.InitiatorDepth,
		RetryCount: min(p.RetryCount, retryMax), RNRRetryCount: min(p.RNRRetryCount, rnrMax),
	}
	if c.ResponderResources == deviceMax {
		c.ResponderResources = in
	}
	if c.InitiatorDepth == deviceMax {
		c.InitiatorDepth = out
	}
	if id.qp != nil {
		c.QPNum = id.qp.Num()
	}
	ece = uabi.ECE{VendorID: p.ECE.VendorID, AttrMod: p.ECE.AttrMod}
	most := id.maxReads()
	switch {
	case len(private) > limit:
		return c, ece, fmt.Errorf("%d bytes of private data, the limit is %d: %w", len(private), limit, unix.EINVAL)
	case id.qp != nil && max(c.ResponderResources, c.InitiatorDepth) > most:
		return c, ece, fmt.Errorf("ResponderResources %d and InitiatorDepth %d, the device's limit is %d: %w",
			c.ResponderResources, c.InitiatorDepth, most, unix.EINVAL)
	}
	c.PrivateDataLen = uint8(copy(c.PrivateData[:], private))
	id.asks, id.minRNRTimer = c.InitiatorDepth, min(cmp.Or(p.MinRNRTimer, cmid.DefaultMinRNRTimer), rnrTimerMax)
	return c, ece, nil
}

// connect implements rdma_connect(3). On iWARP the kernel waits for TCP.
func (id *driverID) connect(c *cmid.Connect) error {
	in := id.in
	cmd := &uabi.Connect{ID: id.kid}
	var err error
	cmd.ConnParam, cmd.ECE, err = id.connParam(c.Param, id.maxReads(), id.maxReads(), c.PrivateData, id.Limits().ConnectData)
	switch {
	case err != nil:
		return err
	case id.isIWARP() && cmd.ConnParam.QPNum == 0:
		return fmt.Errorf("iWARP needs a queue pair before connect: %w", unix.EINVAL)
	case !id.isIWARP():
		if err := in.file.Connect(cmd); err != nil {
			return err
		}
		id.phase = half
		return nil
	case in.connecting >= in.drv.connects:
		return &BusyError{in.connecting, unix.EAGAIN}
	}
	in.connecting++
	id.phase = half
	return id.offLoop(&in.lanes.connects, "connect", func() error { return in.file.Connect(cmd) }, func(err error) error {
		in.connecting--
		if err != nil {
			id.phase = unconnected
		}
		return err
	})
}

// accept is rdma_accept(3). An accept that fails rejects the request: the kernel does that, or this
// function does if it fails before it asks the kernel. The queue pair of an InfiniBand connection
// is made ready off the loop, because the kernel looks for the peer's link address, which takes a
// second without an answer. A peer can cause that at will, since it chooses the source address of
// its request.
func (id *driverID) accept(c *cmid.Accept) error {
	in, f := id.in, id.in.file
	most := id.maxReads()
	cmd := &uabi.Accept{UID: uint64(id.h), ID: id.kid}
	var err error
	cmd.ConnParam, cmd.ECE, err = id.connParam(c.Param, min(id.offered.ResponderResources, most), min(id.offered.InitiatorDepth, most),
		c.PrivateData, id.Limits().AcceptData)
	if c.Param == nil {
		cmd.ConnParam.RetryCount = 0 // the peer's request
	}
	var way *climb
	if err == nil && id.bringsToRTS() {
		way, err = id.prepareRTS(&cmd.ConnParam)
	}
	reject := func() { _ = f.Reject(&uabi.Reject{ID: id.kid, Reason: uint8(cmid.RejectConsumerDefined)}) }
	if err != nil {
		reject()
		return err
	}
	if way != nil {
		return id.offLoop(&in.lanes.accepts, "accept", func() error {
			if err := way.makeChanges(); err != nil {
				reject()
				return err
			}
			return f.Accept(cmd)
		}, func(err error) error {
			if e := (*ThreadsError)(nil); errors.As(err, &e) {
				reject() // the call has not
			}
			if err = way.passResults(err); err != nil {
				id.flushQP()
			}
			return err
		})
	}
	if err := f.Accept(cmd); err != nil {
		id.flushQP()
		return err
	}
	if id.datagram {
		id.phase = connected
	}
	return nil
}

// handleResponse handles the answer to a connect as librdmacm does: it makes the queue pair ready
// and sends the RTU. Like accept it does that off the loop. It reports the result.
func (id *driverID) handleResponse(ev uabi.EventResp) {
	in, f, rtu := id.in, id.in.file, &uabi.Accept{ID: id.kid}
	way, err := id.prepareRTS(nil)
	report := func() {
		in.decodeEvent(false, &ev)
		in.event.Kind = states.KindEstablished
		if err != nil {
			in.event.Kind = states.KindConnectError
			in.event.Err, in.event.Status = err, -int32(errnoOf(err))
		}
		in.up.Event(id.h, &in.event)
	}
	if err != nil {
		id.flushQP()
		report()
		return
	}
	id.callOffLoop(&in.lanes.accepts, "establish", func() error {
		if err := way.makeChanges(); err != nil {
			return err
		}
		return f.Accept(rtu)
	}, func(e error) func() {
		if err = way.passResults(e); err != nil {
			id.flushQP()
		} else {
			id.phase = connected
		}
		return report
	})
}

func (id *driverID) reject(c *cmid.Reject) error {
	if limit := id.Limits().RejectData; len(c.PrivateData) > limit {
		return fmt.Errorf("%d bytes of private data, the limit is %d: %w", len(c.PrivateData), limit, unix.EINVAL)
	}
	cmd := uabi.Reject{ID: id.kid, Reason: uint8(cmid.RejectConsumerDefined)}
	if c.VendorECE {
		cmd.Reason = uint8(cmid.RejectVendorOption)
	}
	cmd.PrivateDataLen = uint8(copy(cmd.PrivateData[:], c.PrivateData))
	return id.in.file.Reject(&cmd)
}

// establish implements rdma_establish(3): the RTU, without parameters.
func (id *driverID) establish() error {
	if err := id.in.file.Accept(&uabi.Accept{ID: id.kid}); err != nil {
		return err
	}
	id.phase = connected
	return nil
}

// disconnect runs rdma_disconnect(3). It first changes the queue pair's state, so that outstanding
// requests are flushed. On iWARP the kernel's command waits while the peer's reply is outstanding.
func (id *driverID) disconnect() error {
	in := id.in
	iwarp := id.isIWARP()
	if id.qp != nil && id.phase == connected {
		to := verbs.QPError
		if iwarp {
			to = verbs.QPSQD
		}
		// one that has failed already stays so
		_ = id.qp.Modify(&verbs.QPAttr{State: to}, verbs.QPAttrState)
	}
	if iwarp && id.phase == half {
		return id.offLoop(&in.lanes.destroys, "disconnect", func() error { return in.file.Disconnect(id.kid) },
			func(err error) error { return err })
	}
	if err := in.file.Disconnect(id.kid); err != nil {
		return err
	}
	id.leaving = true
	id.noteDisconnected()
	return nil
}

// noteDisconnected notes when the kernel has nothing left to wait for: on InfiniBand when both
// sides have disconnected, on iWARP when one side has.
func (id *driverID) noteDisconnected() {
	if id.phase == connected && id.left && (id.leaving || id.isIWARP()) {
		id.phase = unconnected
	}
}
