package ucm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
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

// ofDevice says whether a message ("remove@/devices/virtual/infiniband_verbs/uverbs0", and details)
// is about an RDMA device's end, or about its new name ("move@/devices/virtual/infiniband/rxe1").
func ofDevice(msg []byte) bool {
	path, _, _ := bytes.Cut(msg, []byte{0})
	return bytes.HasPrefix(path, []byte("remove@")) && bytes.Contains(path, []byte("/infiniband_verbs/")) ||
		bytes.HasPrefix(path, []byte("move@")) && bytes.Contains(path, []byte("/infiniband/"))
}

// look gives up the devices whose files have gone, or are another device's by now, and learns the
// others' names.
func (in *instance) look() {
	for _, d := range slices.Clone(in.devices) {
		switch name, gone := d.file.look(); {
		case gone:
			in.drop(d)
		case name != "":
			d.name = name
		}
	}
}

// dataFile is the data path's file of a device in sysfs: its name, which another device may have
// later, and its inode there, which no other has. The zero dataFile is none.
type dataFile struct {
	name  string
	inode uint64
}

// findDataFile is the file of the device called so.
func findDataFile(device string) dataFile {
	files, err := filepath.Glob(verbsDir + "*/ibdev")
	if err != nil {
		return dataFile{}
	}
	for _, f := range files {
		var st unix.Stat_t
		if unix.Stat(filepath.Dir(f), &st) != nil {
			continue
		}
		if text, err := os.ReadFile(f); err == nil && strings.TrimSpace(string(text)) == device {
			return dataFile{filepath.Base(filepath.Dir(f)), st.Ino}
		}
	}
	return dataFile{}
}

// look gives the name of the file's device, "" when that is not known, and says whether it has gone.
func (f dataFile) look() (device string, gone bool) {
	if f == (dataFile{}) {
		return "", false
	}
	text, err := os.ReadFile(verbsDir + f.name + "/ibdev")
	var st unix.Stat_t
	if err == nil {
		err = unix.Stat(verbsDir+f.name, &st) // after: the text may have been another's otherwise
	}
	if err != nil {
		return "", errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV)
	}
	return strings.TrimSpace(string(text)), st.Ino != f.inode
}
