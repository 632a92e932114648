package timing

import (
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// qpTimes are how long the queue pairs took that a runtime has made inside Connect. Loop goroutine.
type qpTimes []time.Duration

// timedDriver notes how long queue pairs take.
type timedDriver struct {
	cmid.Driver
	times *qpTimes
}

func (d timedDriver) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	inst, err := d.Driver.Open(l, up)
	if err != nil {
		return nil, err
	}
	return timedInstance{inst, d.times}, nil
}

type timedInstance struct {
	cmid.Instance
	times *qpTimes
}

func (in timedInstance) CreateQP(h cmid.Handle, attr verbs.QPInitAttr) (verbs.QP, error) {
	begun := time.Now()
	qp, err := in.Instance.CreateQP(h, attr)
	*in.times = append(*in.times, time.Since(begun))
	return qp, err
}
