package ucm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sysfs is a kernel's view of its devices.
type sysfs struct {
	class   string // directory of the devices
	verbs   string // directory of the data path's files
	indices func() (map[string]uint32, error)
}

// hostSysfs is this machine's.
var hostSysfs = &sysfs{"/sys/class/infiniband/", "/sys/class/infiniband_verbs/", askIndices}

// noDevices is the advice for a kernel without RDMA devices. The channel can be opened there, too,
// but every address fails with ENODEV.
const noDevices = "no RDMA device: `rdma link add rxe0 type rxe netdev eth0` makes one of an Ethernet interface"

// haveDevices reports whether the kernel has any RDMA device.
func (f *sysfs) haveDevices() bool {
	names, err := filepath.Glob(f.class + "*")
	return err == nil && len(names) > 0
}

// sysDevice is a device as sysfs shows it.
type sysDevice struct {
	name  string
	ident deviceIdent
	iwarp bool
}

// deviceOf returns the device that is meant.
func (f *sysfs) deviceOf(ident deviceIdent) (s sysDevice, ok bool) {
	list := f.listDevices()
	i := slices.IndexFunc(list, func(s sysDevice) bool { return s.ident.isSame(ident) })
	if i < 0 {
		return sysDevice{}, false
	}
	return list[i], true
}

// listDevices lists the devices, by name.
func (f *sysfs) listDevices() []sysDevice {
	entries, err := os.ReadDir(f.class)
	if err != nil {
		return nil // the directory is there when ib_core is loaded
	}
	indices, _ := f.indices() // without them the node GUIDs must do
	var list []sysDevice
	for _, e := range entries {
		guid, ok := parseGUID(f.readAttr(e.Name(), "node_guid"))
		if !ok {
			continue
		}
		index, known := indices[e.Name()]
		if !known {
			index = noIndex
		}
		const rnic = "4" // RDMA_NODE_RNIC
		list = append(list, sysDevice{e.Name(), deviceIdent{guid, index}, strings.HasPrefix(f.readAttr(e.Name(), "node_type"), rnic)})
	}
	return list
}

// readAttr returns an attribute of a device, "" when it has gone.
func (f *sysfs) readAttr(device, attr string) string {
	text, err := os.ReadFile(f.class + device + "/" + attr)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// gids caches a device's tables of GIDs for a while, so that looking at many connections does not
// read the same files again and again.
type gids struct {
	at    time.Time
	known map[place]gidAttr
}

// place is an entry of a port's table.
type place struct {
	port, index uint8
}

// gidAttr is the kind of a GID and the network interface that it belongs to; "" if the entry is
// unused.
type gidAttr struct{ kind, netdev string }

// gidsFor is how long the tables are believed.
const gidsFor = time.Second

// lookUpGID looks an entry up.
func (d *device) lookUpGID(sys *sysfs, now time.Time, at place) gidAttr {
	g := &d.gids
	if g.known == nil || now.Sub(g.at) > gidsFor {
		g.at, g.known = now, make(map[place]gidAttr)
	}
	a, ok := g.known[at]
	if !ok {
		dir, index := fmt.Sprintf("ports/%d/gid_attrs/", at.port), fmt.Sprint(at.index)
		a = gidAttr{sys.readAttr(d.name, dir+"types/"+index), sys.readAttr(d.name, dir+"ndevs/"+index)}
		g.known[at] = a
	}
	return a
}

// parseGUID reads "0a00:27ff:fe12:3456". 0 is valid: a function of SR-IOV has it before it gets a
// GUID.
func parseGUID(s string) (uint64, bool) {
	guid, err := strconv.ParseUint(strings.ReplaceAll(s, ":", ""), 16, 64)
	return guid, err == nil
}

// findDataFile finds the data path's file of a device.
func (f *sysfs) findDataFile(device string) dataFile {
	files, err := filepath.Glob(f.verbs + "*/ibdev")
	if err != nil {
		return dataFile{}
	}
	for _, file := range files {
		var st unix.Stat_t
		if unix.Stat(filepath.Dir(file), &st) != nil {
			continue
		}
		if text, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(text)) == device {
			return dataFile{filepath.Base(filepath.Dir(file)), st.Ino}
		}
	}
	return dataFile{}
}

// dataFileDevice returns the name of the device of d, "" when that is not known, and reports
// whether it has gone.
func (f *sysfs) dataFileDevice(d dataFile) (device string, gone bool) {
	if d == (dataFile{}) {
		return "", false
	}
	text, err := os.ReadFile(f.verbs + d.name + "/ibdev")
	var st unix.Stat_t
	if err == nil {
		err = unix.Stat(f.verbs+d.name, &st) // after: the text may have been another's otherwise
	}
	if err != nil {
		return "", errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV)
	}
	return strings.TrimSpace(string(text)), st.Ino != d.inode
}
