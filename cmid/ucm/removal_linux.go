package ucm

import (
	"bytes"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// watchRemovals begins to listen. Where that is not possible (a container without netlink), a
// removal waits until the channel is closed.
func (in *instance) watchRemovals() {
	if in.removals != nil {
		return
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return
	}
	const fromKernel = 1 // the multicast group
	r := &removals{in: in, fd: fd}
	if err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: fromKernel}); err == nil {
		r.reg, err = in.loop.Add(fd, eventloop.Readable, r)
	}
	if err != nil {
		_ = unix.Close(fd)
		return
	}
	in.removals = r
}

func (in *instance) unwatchRemovals() error {
	r := in.removals
	if r == nil {
		return nil
	}
	in.removals = nil
	return errors.Join(r.reg.Remove(), unix.Close(r.fd))
}

// Ready reads the kernel's messages about all its devices.
func (r *removals) Ready(eventloop.Events) {
	for range eventsPerTurn {
		n, _, err := unix.Recvfrom(r.fd, r.buf[:], 0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil, ofDevice(r.buf[:n]):
			r.in.checkDevices() // an error: some were lost
		}
		if r.in.removals != r {
			return
		}
	}
}

// ofDevice reports whether a message ("remove@/devices/virtual/infiniband_verbs/uverbs0", and
// details) is about an RDMA device's end, or about its new name
// ("move@/devices/virtual/infiniband/rxe1").
func ofDevice(msg []byte) bool {
	path, _, _ := bytes.Cut(msg, []byte{0})
	return bytes.HasPrefix(path, []byte("remove@")) && bytes.Contains(path, []byte("/infiniband_verbs/")) ||
		bytes.HasPrefix(path, []byte("move@")) && bytes.Contains(path, []byte("/infiniband/"))
}

// checkDevices gives up the devices whose files have gone, or are another device's by now, and
// learns the others' names.
func (in *instance) checkDevices() {
	for _, d := range slices.Clone(in.devices) {
		switch name, gone := in.sys.dataFileDevice(d.file); {
		case gone:
			in.removeDevice(d)
		case name != "":
			d.name = name
		}
	}
}

// removeDevice forgets a device that is being removed, because another one may come under the same
// name and GUID. It also releases the objects that the kernel waits for. The device's memory stays
// usable for its owners until Close. The kernel may end rdma_cm or the data path's file first,
// depending on the order in which its modules were loaded.
func (in *instance) removeDevice(d *device) {
	i := slices.Index(in.devices, d)
	if i < 0 { // those of d's time: the next device may have a data path
		in.devices = slices.DeleteFunc(in.devices, func(at *device) bool { return at.ident.isSame(d.ident) && at.data == nil })
		return
	}
	in.devices = slices.Delete(in.devices, i, i+1)
	in.gone = append(in.gone, d)
	if l, ok := d.data.(leaver); ok {
		l.Removed()
	}
}
