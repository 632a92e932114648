package doctor

import (
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Bounds of the input. A device has up to 255 ports in theory and 4 in practice. A port of an
// adapter has 256 GIDs, most of them empty.
const (
	mostText    = 4096 // bytes: a page, the maximum of a sysfs file
	mostDevices = 256
	mostPorts   = 32
	mostIndices = 1024
	mostGIDs    = 64 // reported at most
)

const (
	class      = "class/infiniband"
	verbsClass = "class/infiniband_verbs"
)

// sysDevices reads the devices from sysfs, whose root is sys. It returns an error if the kernel has
// no RDMA.
func sysDevices(sys fs.FS) ([]Device, error) {
	names, err := listDir(sys, class, mostDevices)
	if err != nil {
		return nil, err
	}
	files := dataFiles(sys)
	var all []Device
	for _, name := range names {
		all = append(all, sysDevice(sys, name, files[name]))
	}
	return all, nil
}

// listDir returns the names in a directory, sorted and at most most of them.
func listDir(sys fs.FS, dir string, most int) (names []string, err error) {
	f, err := sys.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrInvalid}
	}
	entries, err := d.ReadDir(most)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.Sort(names)
	return names, err
}

// readText returns the content of a sysfs file, or "" if there is none.
func readText(sys fs.FS, name ...string) string {
	f, err := sys.Open(path.Join(name...))
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, mostText)
	n, _ := io.ReadFull(f, b)
	return strings.TrimSpace(string(b[:n]))
}

// dataFiles returns the files of data paths, by device.
func dataFiles(sys fs.FS) map[string]string {
	files := make(map[string]string)
	names, _ := listDir(sys, verbsClass, 2*mostDevices) // without ib_uverbs there are none
	for _, name := range names {
		if device := readText(sys, verbsClass, name, "ibdev"); device != "" {
			files[device] = "/dev/infiniband/" + name
		}
	}
	return files
}

func sysDevice(sys fs.FS, name, file string) Device {
	dir := path.Join(class, name)
	d := Device{
		Name: name, File: file, NodeGUID: readText(sys, dir, "node_guid"), Firmware: readText(sys, dir, "fw_ver"), Board: readText(sys, dir, "board_id"),
	}
	if guid, err := strconv.ParseUint(strings.ReplaceAll(d.NodeGUID, ":", ""), 16, 64); err == nil {
		d.guid = guid
	}
	for line := range strings.Lines(readText(sys, dir, "device/uevent")) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
		case "DRIVER":
			d.Driver = value // unless the kernel reports the device's data path
		case "PCI_SLOT_NAME":
			d.PCI = value
		}
	}
	numbers, _ := listDir(sys, path.Join(dir, "ports"), mostPorts) // a device may have none
	for _, number := range numbers {
		if n, err := strconv.Atoi(number); err == nil && n > 0 {
			d.Ports = append(d.Ports, sysPort(sys, path.Join(dir, "ports", number), n))
		}
	}
	if d.Transport = transportName(readText(sys, dir, "node_type"), d.Ports); d.Transport == "iWARP" {
		for i := range d.Ports {
			d.Ports[i].removeGIDTypes()
		}
	}
	return d
}

// transportName names a device's transport. node is as in "1: CA".
func transportName(node string, ports []Port) string {
	number, _, _ := strings.Cut(node, ":")
	switch {
	case number == "4":
		return "iWARP"
	case number != "1":
		return ""
	case slices.ContainsFunc(ports, func(p Port) bool { return p.LinkLayer == "Ethernet" }):
		return "RoCE"
	}
	return "InfiniBand"
}

func sysPort(sys fs.FS, dir string, number int) Port {
	p := Port{
		Number: number, State: behindColon(readText(sys, dir, "state")), Physical: behindColon(readText(sys, dir, "phys_state")),
		LinkLayer: readText(sys, dir, "link_layer"), Rate: readText(sys, dir, "rate"),
	}
	for i := range mostIndices {
		index := strconv.Itoa(i)
		address := readText(sys, dir, "gids", index)
		if address == "" {
			break // the end of the table
		}
		ip, err := netip.ParseAddr(address)
		if err == nil && ip.IsUnspecified() {
			continue
		}
		if len(p.GIDs) == mostGIDs {
			p.Cut = true
			break
		}
		g := GID{Index: i, Address: address, Type: readText(sys, dir, "gid_attrs/types", index), Netdev: readText(sys, dir, "gid_attrs/ndevs", index)}
		if err == nil {
			g.Address = ip.Unmap().String()
		}
		p.GIDs = append(p.GIDs, g)
		if p.Netdev == "" {
			p.Netdev = g.Netdev
		}
	}
	return p
}

// removeGIDTypes removes the types of GIDs. Those of iWARP are hardware addresses.
func (p *Port) removeGIDTypes() {
	for i := range p.GIDs {
		p.GIDs[i].Type = ""
	}
}

// behindColon returns ACTIVE for "4: ACTIVE".
func behindColon(s string) string {
	if _, word, ok := strings.Cut(s, ":"); ok {
		return strings.TrimSpace(word)
	}
	return s
}

// netdevMTU returns a network interface's MTU, or 0 if it is unknown.
func netdevMTU(sys fs.FS, netdev string) int {
	if netdev == "" || !fs.ValidPath(netdev) {
		return 0
	}
	n, err := strconv.Atoi(readText(sys, "class/net", netdev, "mtu"))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// ofInterest are the modules that devices and connections need.
var ofInterest = []string{
	"ib_core", "ib_uverbs", "rdma_ucm", "rdma_cm", "ib_cm", "iw_cm", "rdma_rxe", "siw", "mlx4_ib", "mlx5_ib", "irdma", "bnxt_re", "iw_cxgb4",
	"qedr", "hns_roce_hw_v2", "vmw_pvrdma", "erdma", "mana_ib", "efa", "hfi1", "ocrdma",
}

// loadedModules returns the modules of interest that are loaded, or built in with parameters.
func loadedModules(sys fs.FS) []string {
	loaded := []string{}
	for _, m := range ofInterest {
		if _, err := fs.Stat(sys, "module/"+m); err == nil {
			loaded = append(loaded, m)
		}
	}
	return loaded
}

// upInterfaces returns the interfaces that are up and may have a device: all but loopback.
func upInterfaces(sys fs.FS) []string {
	names := []string{}
	const ethernet, most = "1", 8 // ARPHRD_ETHER
	all, _ := listDir(sys, "class/net", mostDevices)
	for _, n := range all {
		up := readText(sys, "class/net", n, "operstate")
		if readText(sys, "class/net", n, "type") == ethernet && (up == "up" || up == "unknown") && len(names) < most {
			names = append(names, n)
		}
	}
	return names
}
