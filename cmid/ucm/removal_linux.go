package ucm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// verbsDir is where sysfs shows the data path's files.
const verbsDir = "/sys/class/infiniband_verbs/"

// leaver is a verbs.ProviderDevice that the kernel waits for when it removes the device.
type leaver interface {
	// Removed gives back what the kernel waits for. Memory stays until Close.
	Removed()
}

// removals hears from the kernel that devices are being removed. rdma_cm does not tell before nobody has the data path open any more, and
// the data path of a software device does not tell at all; but first its file leaves sysfs, and of that every process is told.
type removals struct {
	in  *instance
	fd  int
	reg *eventloop.Registration
	buf [8192]byte
}

// watch begins to listen. Where that is not possible (a container without netlink), a removal waits until the channel is closed.
func (in *instance) watch() {
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

func (in *instance) unwatch() error {
	r := in.removals
	if r == nil {
		return nil
	}
	in.removals = nil
	return errors.Join(r.reg.Remove(), unix.Close(r.fd))
}

// Ready reads what the kernel tells of all its devices.
func (r *removals) Ready(eventloop.Events) {
	for range eventsPerTurn {
		n, _, err := unix.Recvfrom(r.fd, r.buf[:], 0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return
		case err != nil, ofDevice(r.buf[:n]):
			r.in.look() // an error: some were lost
		}
		if r.in.removals != r {
			return
		}
	}
}

// ofDevice says whether a message ("remove@/devices/virtual/infiniband_verbs/uverbs0", and details) is about an RDMA device's end.
func ofDevice(msg []byte) bool {
	return bytes.HasPrefix(msg, []byte("remove@")) && bytes.Contains(msg, []byte("/infiniband_verbs/"))
}

// look gives up the devices whose files have gone, or are another device's by now.
func (in *instance) look() {
	for _, d := range in.devices {
		if d.file == "" {
			continue
		}
		text, err := os.ReadFile(verbsDir + d.file + "/ibdev")
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || err == nil && strings.TrimSpace(string(text)) != d.name {
			in.drop(d)
		}
	}
}

// verbsFile is the name of a device's file in verbsDir, "" when it has none.
func verbsFile(device string) string {
	files, err := filepath.Glob(verbsDir + "*/ibdev")
	if err != nil {
		return ""
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(text)) == device {
			return filepath.Base(filepath.Dir(f))
		}
	}
	return ""
}
