package timing

import (
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// qpTimes are the durations of CreateQP, which a runtime calls inside Connect. Only the loop's
// goroutine may use them.
type qpTimes []time.Duration

// timedDriver is a driver that records how long CreateQP takes.
type timedDriver struct {
	cmid.Driver
	times *qpTimes
}

func (d timedDriver) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	inst, err := d.Driver.Open(l, up)
	return timedInstance{inst, d.times}, err
}

type timedInstance struct {
	cmid.Instance
	times *qpTimes
}

func (in timedInstance) CreateID(h cmid.Handle, ps cmid.PortSpace, t cmid.QPType) (cmid.DriverID, error) {
	id, err := in.Instance.CreateID(h, ps, t)
	return timedID{id, in.times}, err
}

type timedID struct {
	cmid.DriverID
	times *qpTimes
}

func (id timedID) CreateQP(attr verbs.QPInitAttr) (verbs.QP, error) {
	begun := time.Now()
	qp, err := id.DriverID.CreateQP(attr)
	*id.times = append(*id.times, time.Since(begun))
	return qp, err
}
