package iwarp

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/iwarp/core"
	"github.com/rdmactor/rdmactor/verbs"
)

// device is the verbs side of an instance.
type device struct {
	in      *instance
	regions map[uint32]*verbs.MR // by STag
	qps     map[uint32]*queuePair
	lastQP  uint32
}

func newDevice(in *instance) *device {
	return &device{in: in, regions: make(map[uint32]*verbs.MR), qps: make(map[uint32]*queuePair)}
}

// Name is Config.Device.
func (d *device) Name() string { return d.in.cfg.Device }

// Attr gives the device's limits.
func (d *device) Attr() verbs.DeviceAttr {
	return verbs.DeviceAttr{
		MaxQP: d.in.cfg.MaxConns, MaxQPWR: maxQPWR, MaxSGE: core.MaxSGE, MaxInline: core.MaxInline,
		MaxMessage: math.MaxUint32, MaxRDAtom: maxRDAtom,
	}
}

// Alloc makes a memory region. Its key and its address are random: neither tells a peer anything about the process or about other
// regions.
func (d *device) Alloc(n int, access verbs.Access) (*verbs.MR, error) {
	if n <= 0 || n > math.MaxUint32 {
		return nil, fmt.Errorf("iwarp: memory region of %d bytes: %w", n, unix.EINVAL)
	}
	var b [12]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		stag := binary.NativeEndian.Uint32(b[:])
		if stag == 0 || stag == 1 || d.regions[stag] != nil { // 0 and 1 stand for "none" in empty messages
			continue
		}
		mr := &verbs.MR{
			Bytes: make([]byte, n),
			Addr:  binary.NativeEndian.Uint64(b[4:]) &^ (1<<63 | 4095), // so that Addr+n does not wrap
			LKey:  stag, RKey: stag, Access: access,
		}
		d.regions[stag] = mr
		return mr, nil
	}
}

// Free forgets mr. EINVAL when it is not, or no longer, a region of this device.
func (d *device) Free(mr *verbs.MR) error {
	if mr == nil || d.regions[mr.LKey] != mr {
		return fmt.Errorf("iwarp: not a memory region of %s: %w", d.Name(), unix.EINVAL)
	}
	delete(d.regions, mr.LKey)
	return nil
}

// CreateCQ makes a completion queue. It grows to what is outstanding on its queue pairs, whatever cqe says.
func (d *device) CreateCQ(cqe int, notify func()) (verbs.CQ, error) {
	if cqe < 0 || notify == nil {
		return nil, fmt.Errorf("iwarp: completion queue of %d, notify %t: %w", cqe, notify != nil, unix.EINVAL)
	}
	return &completionQueue{dev: d, notify: notify}, nil
}

// CreateSRQ makes a shared receive queue.
func (d *device) CreateSRQ(attr verbs.SRQInitAttr) (verbs.SRQ, error) {
	if attr.MaxWR <= 0 || attr.MaxWR > math.MaxInt32 {
		return nil, fmt.Errorf("iwarp: shared receive queue of %d: %w", attr.MaxWR, unix.EINVAL)
	}
	return &sharedQueue{dev: d, attr: attr}, nil
}
