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

const classDir = "/sys/class/infiniband/"

// verbsDir is where sysfs shows the data path's files.
const verbsDir = "/sys/class/infiniband_verbs/"

// noDevices is the advice for a kernel without RDMA devices. The channel can be opened there, too,
// but every address fails with ENODEV.
const noDevices = "no RDMA device: `rdma link add rxe0 type rxe netdev eth0` makes one of an Ethernet interface"

// haveDevices says whether the kernel has any RDMA device.
func haveDevices() bool {
	names, err := filepath.Glob(classDir + "*")
	return err == nil && len(names) > 0
}

// sysDevice is a device as sysfs shows it.
type sysDevice struct {
	name  string
	ident deviceIdent
	iwarp bool
}

// sysDeviceOf is the device that is meant.
func sysDeviceOf(ident deviceIdent) (s sysDevice, ok bool) {
	list := sysDevices()
	i := slices.IndexFunc(list, func(s sysDevice) bool { return s.ident.is(ident) })
	if i < 0 {
		return sysDevice{}, false
	}
	return list[i], true
}

// sysDevices lists the devices, by name.
func sysDevices() []sysDevice {
	entries, err := os.ReadDir(classDir)
	if err != nil {
		return nil // the directory is there when ib_core is loaded
	}
	indices, _ := askIndices() // without them the node GUIDs must do
	var list []sysDevice
	for _, e := range entries {
		guid, ok := parseGUID(sysText(e.Name(), "node_guid"))
		if !ok {
			continue
		}
		index, known := indices[e.Name()]
		if !known {
			index = noIndex
		}
		const rnic = "4" // RDMA_NODE_RNIC
		list = append(list, sysDevice{e.Name(), deviceIdent{guid, index}, strings.HasPrefix(sysText(e.Name(), "node_type"), rnic)})
	}
	return list
}

// sysText is an attribute of a device, "" when it has gone.
func sysText(device, attr string) string {
	text, err := os.ReadFile(classDir + device + "/" + attr)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// gids remembers for a while what a device's tables of GIDs say, so that looking at many
// connections does not read the same files again and again.
type gids struct {
	at    time.Time
	known map[place]gidAttr
}

// place is an entry of a port's table.
type place struct {
	port, index uint8
}

// gidAttr is the kind of a GID and the network interface that it belongs to; "" if the entry is not
// used any more.
type gidAttr struct{ kind, netdev string }

// gidsFor is how long the tables are believed.
const gidsFor = time.Second

// gid looks an entry up.
func (d *device) gid(now time.Time, at place) gidAttr {
	g := &d.gids
	if g.known == nil || now.Sub(g.at) > gidsFor {
		g.at, g.known = now, make(map[place]gidAttr)
	}
	a, ok := g.known[at]
	if !ok {
		dir, index := fmt.Sprintf("ports/%d/gid_attrs/", at.port), fmt.Sprint(at.index)
		a = gidAttr{sysText(d.name, dir+"types/"+index), sysText(d.name, dir+"ndevs/"+index)}
		g.known[at] = a
	}
	return a
}

// parseGUID reads "0a00:27ff:fe12:3456".
func parseGUID(s string) (uint64, bool) {
	guid, err := strconv.ParseUint(strings.ReplaceAll(s, ":", ""), 16, 64)
	return guid, err == nil && guid != 0
}

// findDataFile finds the data path's file of a device.
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

// look gives the name of the file's device, "" when that is not known, and says whether it has
// gone.
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
