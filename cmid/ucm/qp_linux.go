package ucm

import (
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

// Rights that a connection's peer has on a queue pair (enum ib_access_flags). Which memory it may
// use depends on the keys.
const (
	accessRemoteWrite  = 1 << 1
	accessRemoteRead   = 1 << 2
	accessRemoteAtomic = 1 << 3
)

// CreateQP is rdma_create_qp(3): the queue pair can receive (INIT), a datagram's can send too
// (RTS).
func (id *driverID) CreateQP(attr verbs.QPInitAttr) (verbs.QP, error) {
	if id.dev == nil || id.hasQP() {
		return nil, unix.EINVAL
	}
	t := verbs.RC
	if id.datagram {
		t = verbs.UD
	}
	qp, err := id.dev.createQP(t, attr)
	if err != nil {
		return nil, err
	}
	if err := id.initQP(qp, t); err != nil {
		_ = qp.Destroy()
		return nil, err
	}
	id.qp = qp
	qp.OnEvent(id.qpEvent)
	return qp, nil
}

// hasQP reports whether there is a queue pair that its owner has not destroyed. A destroyed one
// refuses even a Modify that changes nothing.
func (id *driverID) hasQP() bool { return id.qp != nil && id.qp.Modify(&verbs.QPAttr{}, 0) == nil }

// qpEvent handles the queue pair's events. A message that came before the RTU means that the
// connection is established. A failure of the queue pair is passed on, because rdma_cm does not
// know of it.
func (id *driverID) qpEvent(ev verbs.QPEvent) {
	switch {
	case id.in.ids[id.h] != id:
	case id.away != nil:
		id.late = append(id.late, func() { id.qpEvent(ev) })
	case ev == verbs.QPCommEst && id.phase == half:
		// EISCONN: the RTU has come in between
		_ = id.in.file.Notify(id.kid, uabi.NotifyEventCommEst)
	case ev == verbs.QPFatal:
		id.in.up.Event(id.h, &cmid.DriverEvent{Kind: states.KindQPFailed})
	}
}

// initQP brings a new queue pair to INIT, and a datagram's on to RTS.
func (id *driverID) initQP(qp verbs.ProviderQP, t verbs.QPType) error {
	attr, mask, err := id.initAttr(t)
	if err != nil {
		return err
	}
	if err := qp.Modify(&attr, mask); err != nil || t != verbs.UD {
		return err
	}
	if err := qp.Modify(&verbs.QPAttr{State: verbs.QPRTR}, verbs.QPAttrState); err != nil {
		return err
	}
	return qp.Modify(&verbs.QPAttr{State: verbs.QPRTS}, verbs.QPAttrState|verbs.QPAttrSQPSN)
}

// initAttr returns the attributes for INIT. The kernel's give a peer no rights before there
// is a connection, so librdmacm goes through INIT twice. This function sets the rights itself.
// Only on InfiniBand must the kernel be asked for the partition.
func (id *driverID) initAttr(t verbs.QPType) (attr verbs.QPAttr, mask verbs.QPAttrMask, err error) {
	attr = verbs.QPAttr{State: verbs.QPInit, Port: id.port, QKey: uabi.UDPQKey}
	mask = verbs.QPAttrState | verbs.QPAttrPort
	if id.dev.partitions {
		raw, err := id.in.file.InitQPAttr(id.kid, uabi.QPStateInit)
		if err != nil {
			return attr, 0, err
		}
		attr, mask = qpAttr(&raw)
	} else if !id.dev.iwarp {
		mask |= verbs.QPAttrPKeyIndex
	}
	if t == verbs.UD {
		return attr, mask | verbs.QPAttrQKey, nil
	}
	attr.AccessFlags |= accessRemoteWrite | accessRemoteRead
	if !id.dev.iwarp {
		attr.AccessFlags |= accessRemoteAtomic
	}
	return attr, mask | verbs.QPAttrAccessFlags, nil
}

// bringsToRTS reports whether this driver brings the queue pair to RTS. On iWARP the kernel does
// that when it takes the TCP stream over.
func (id *driverID) bringsToRTS() bool { return id.qp != nil && !id.datagram && !id.isIWARP() }

// climb is the sequence of state changes that brings a queue pair to RTS. They may wait in the
// kernel.
type climb struct {
	steps []verbs.Later
	errs  []error // of those that were taken
}

// prepareRTS prepares the sequence, on the accepting side with c, where the caller chooses the
// depths, the traffic class and the retries. The kernel has the peer's there.
func (id *driverID) prepareRTS(c *uabi.ConnParam) (*climb, error) {
	way := &climb{}
	var told [2]verbs.QPAttr
	for i, state := range [...]uint32{uabi.QPStateRTR, uabi.QPStateRTS} {
		raw, err := id.in.file.InitQPAttr(id.kid, state)
		if err != nil {
			return nil, way.passResults(err)
		}
		attr, mask := qpAttr(&raw)
		if c != nil {
			id.applyChoices(&attr, c)
		}
		attr.RetryCount = min(attr.RetryCount, retries)
		attr.MinRNRTimer = id.minRNRTimer // the kernel's 0 is 655 ms
		told[i] = attr
		way.steps = append(way.steps, id.qp.ModifyLater(&attr, mask))
	}
	id.path = cmid.PathOf(&told[0], &told[1])
	return way, nil
}

// applyChoices puts the accepting side's choices into attr.
func (id *driverID) applyChoices(attr *verbs.QPAttr, c *uabi.ConnParam) {
	attr.MaxDestRDAtomic, attr.MaxRDAtomic = c.ResponderResources, c.InitiatorDepth
	if c.RetryCount > 0 {
		attr.RetryCount = c.RetryCount
	}
	if id.hasTOS {
		attr.AH.GRH.TrafficClass = id.tos
	}
}

// makeChanges makes the state changes, up to the first that fails. Any goroutine.
func (w *climb) makeChanges() error {
	for _, step := range w.steps {
		err := step.Wait()
		w.errs = append(w.errs, err)
		if err != nil {
			return err
		}
	}
	return nil
}

// passResults passes each state change its result. err is the result of all of them and of what
// followed. A change that was not made ends with err.
func (w *climb) passResults(err error) error {
	for i, step := range w.steps {
		if i >= len(w.errs) {
			_ = step.End(err)
		} else if e := step.End(w.errs[i]); e != nil {
			err = e
		}
	}
	return err
}

// limitReads limits the Reads that may be outstanding on the queue pair of an iWARP connection. The
// kernel sets the queue pair up, and siw accepts more Reads than the peer serves, and then never
// sends anything again.
func (id *driverID) limitReads(served uint8) {
	if n := min(id.asks, served); id.qp != nil && id.dev.iwarp && n < id.maxReads() {
		// it may have been destroyed
		_ = id.qp.Modify(&verbs.QPAttr{MaxRDAtomic: n}, verbs.QPAttrMaxRDAtomic)
	}
}

// flushQP flushes the queue pair.
func (id *driverID) flushQP() {
	if id.qp != nil {
		// it may have failed already
		_ = id.qp.Modify(&verbs.QPAttr{State: verbs.QPError}, verbs.QPAttrState)
	}
}

const (
	deviceMax = 255 // RDMA_MAX_RESP_RES, RDMA_MAX_INIT_DEPTH: as many as the device can
	// retries of unacknowledged packets: the largest count that ends on every device, because
	// soft-RoCE takes 7 as no end
	retries  = 6
	rnrMax   = 7 // of RNR NAKs: without end
	retryMax = 7

	rnrTimerMax = 31
)

// maxReads returns how many reads the device can have outstanding, and 1 if not known.
func (id *driverID) maxReads() uint8 {
	if id.dev == nil {
		return 1
	}
	return uint8(min(max(id.dev.verbs.Attr().MaxRDAtom, 1), deviceMax-1))
}

// InitQPAttr is rdma_init_qp_attr(3).
func (id *driverID) InitQPAttr(s verbs.QPState) (verbs.QPAttr, verbs.QPAttrMask, error) {
	raw, err := id.in.file.InitQPAttr(id.kid, uint32(s))
	if err != nil {
		return verbs.QPAttr{}, 0, err
	}
	attr, mask := qpAttr(&raw)
	return attr, mask, nil
}
