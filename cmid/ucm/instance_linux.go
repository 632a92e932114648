package ucm

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm/internal/uabi"
	"github.com/rdmactor/rdmactor/eventloop"
)

// Open opens an event channel. The error is an *OpenError.
func (d *Driver) Open(l *eventloop.Loop, up cmid.Upcalls) (cmid.Instance, error) {
	f, err := openShared()
	if err != nil {
		return nil, err
	}
	in := newInstance(d, l, up, f)
	if in.reg, err = l.Add(f.FD(), eventloop.Readable, in); err != nil {
		in.lanes.removeUser()
		return nil, errors.Join(err, f.Close())
	}
	return in, nil
}

func newInstance(d *Driver, l *eventloop.Loop, up cmid.Upcalls, f *uabi.File) *instance {
	in := &instance{
		drv: d, loop: l, up: up, file: f,
		ids:     make(map[cmid.Handle]*driverID),
		groups:  make(map[cmid.Handle]*group),
		busy:    make(map[*driverID]string),
		backlog: maxBacklog(),
		lanes:   &process,
		sys:     hostSysfs,
	}
	in.lanes.addUser()
	in.mail.loop, in.mail.came = l, make(chan struct{}, 1)
	in.mail.after = func() { in.lost.reportWaiting() }
	return in
}

// maxBacklog returns the kernel's limit of unfetched requests.
func maxBacklog() int {
	if text, err := os.ReadFile("/proc/sys/net/rdma_ucm/max_backlog"); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && n > 0 {
			return n
		}
	}
	return uabi.MaxBacklogDefault
}

// CreateID makes an identifier.
func (in *instance) CreateID(h cmid.Handle, ps cmid.PortSpace, t cmid.QPType) (cmid.DriverID, error) {
	switch {
	case in.closed:
		return nil, unix.EBADF
	case in.lost != nil:
		return nil, in.lost.err
	}
	id := &driverID{in: in, h: h, datagram: t == cmid.QPTypeUD}
	var err error
	if id.kid, err = in.file.CreateID(uint64(h), uint16(ps), uint8(t)); err != nil {
		return nil, in.checkError(err)
	}
	in.ids[h] = id
	return id, nil
}

// Close destroys every identifier, and waits for those that the kernel takes its time for: not
// longer than two seconds for all of them together. A *HeldError names the others. The destruction
// of local objects (queue pairs, memory, the devices' files) is not counted.
func (in *instance) Close() error {
	if in.closed {
		return nil
	}
	in.closed = true
	var err error
	if in.reg != nil {
		err = in.reg.Remove()
	}
	for _, id := range in.ids {
		_ = id.destroy()
	}
	late := in.mail.awaitResults(in.drv.closeWait)
	in.lanes.removeUser()
	err = errors.Join(err, in.unwatchRemovals())
	for _, d := range append(in.gone, in.devices...) {
		err = errors.Join(err, d.close())
	}
	in.devices, in.gone = nil, nil
	if in.lost == nil {
		err = errors.Join(err, in.file.Close())
	}
	if late {
		err = errors.Join(err, in.notGivenBack())
	}
	return err
}

func (in *instance) notGivenBack() error {
	e := &HeldError{Err: unix.ETIMEDOUT}
	for id, doing := range in.busy {
		e.IDs = append(e.IDs, id.keptBy(doing))
	}
	return e
}
