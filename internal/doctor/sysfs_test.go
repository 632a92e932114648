package doctor

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

// The trees here are made up, not recorded from real devices. They follow the kernel's
// sysfs-class-infiniband.
type tree fstest.MapFS

func (m tree) put(dir string, files ...string) tree {
	for i := 0; i < len(files); i += 2 {
		m[dir+"/"+files[i]] = &fstest.MapFile{Data: []byte(files[i+1] + "\n")}
	}
	return m
}

// device adds a made-up device with one port.
func (m tree) device(name, nodeType, driver, state, link string, gids ...string) tree {
	dir := "class/infiniband/" + name
	m.put(dir, "node_guid", "0200:00ff:fe00:0001", "node_type", nodeType, "fw_ver", "1.2.3",
		"ports/1/state", state, "ports/1/phys_state", "5: LinkUp", "ports/1/link_layer", link, "ports/1/rate", "100 Gb/sec (4X EDR)")
	if driver != "" {
		m.put(dir, "device/uevent", "DRIVER="+driver+"\nPCI_CLASS=20000\nPCI_SLOT_NAME=0000:3b:00.0")
	}
	for i := range 4 {
		m.put(dir+"/ports/1/gids", fmt.Sprint(i), "0000:0000:0000:0000:0000:0000:0000:0000")
	}
	for i, g := range gids {
		g, kind, _ := strings.Cut(g, " ")
		n := fmt.Sprint(i)
		m.put(dir+"/ports/1", "gids/"+n, g)
		if kind != "" {
			m.put(dir+"/ports/1", "gid_attrs/types/"+n, kind, "gid_attrs/ndevs/"+n, "eth0")
		}
	}
	return m.put("class/infiniband_verbs/uverbs_"+name, "ibdev", name, "abi_version", "1")
}

const (
	v4     = "0000:0000:0000:0000:0000:ffff:c000:0201" // 192.0.2.1
	linkv6 = "fe80:0000:0000:0000:0200:00ff:fe00:0001"
)

func TestTrees(t *testing.T) {
	m := tree{}.put("class/net/eth0", "mtu", "9000", "type", "1", "operstate", "up").
		put("class/net/lo", "mtu", "65536", "type", "772", "operstate", "unknown").
		put("module/mlx5_ib", "refcnt", "1").put("module/nfs", "refcnt", "1").
		device("mlx5_0", "1: CA", "mlx5_core", "4: ACTIVE", "Ethernet", linkv6+" IB/RoCE v1", linkv6+" RoCE v2", v4+" RoCE v2").
		device("mlx5_1", "1: CA", "mlx5_core", "2: INIT", "InfiniBand", linkv6).
		device("irdma0", "4: RNIC", "ice", "4: ACTIVE", "Ethernet", "0200:0000:0001:0000:0000:0000:0000:0000 IB/RoCE v1").
		device("bnxt_re0", "1: CA", "bnxt_en", "1: DOWN", "Ethernet").
		device("rxe0", "1: CA", "", "4: ACTIVE", "Ethernet", v4+" RoCE v2").
		device("siw0", "4: RNIC", "", "4: ACTIVE", "Ethernet", "0200:0000:0002:0000:0000:0000:0000:0000")
	all, err := sysDevices(fstest.MapFS(m))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range all {
		p := d.Ports[0]
		got = append(got, fmt.Sprintf("%s %s %q %s %s %s %d GIDs %q", d.Name, d.Transport, d.Driver, d.File, p.State, p.LinkLayer, len(p.GIDs), p.Netdev))
		if roce := slices.ContainsFunc(p.GIDs, func(g GID) bool { return strings.Contains(g.Type, "RoCE") }); roce && d.Transport == "iWARP" {
			t.Errorf("%s: %+v", d.Name, p.GIDs)
		}
	}
	want := []string{
		`bnxt_re0 RoCE "bnxt_en" /dev/infiniband/uverbs_bnxt_re0 DOWN Ethernet 0 GIDs ""`,
		`irdma0 iWARP "ice" /dev/infiniband/uverbs_irdma0 ACTIVE Ethernet 1 GIDs "eth0"`,
		`mlx5_0 RoCE "mlx5_core" /dev/infiniband/uverbs_mlx5_0 ACTIVE Ethernet 3 GIDs "eth0"`,
		`mlx5_1 InfiniBand "mlx5_core" /dev/infiniband/uverbs_mlx5_1 INIT InfiniBand 1 GIDs ""`,
		`rxe0 RoCE "" /dev/infiniband/uverbs_rxe0 ACTIVE Ethernet 1 GIDs "eth0"`,
		`siw0 iWARP "" /dev/infiniband/uverbs_siw0 ACTIVE Ethernet 1 GIDs ""`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	d := all[2]
	if d.guid != 0x020000fffe000001 || d.PCI != "0000:3b:00.0" || d.Firmware != "1.2.3" {
		t.Errorf("%+v", d)
	}
	if g := d.Ports[0].GIDs[2]; g != (GID{2, "RoCE v2", "192.0.2.1", "eth0"}) {
		t.Errorf("%+v", g)
	}
	if n := netdevMTU(fstest.MapFS(m), "eth0"); n != 9000 {
		t.Errorf("MTU %d", n)
	}
	if got := fmt.Sprint(loadedModules(fstest.MapFS(m)), upInterfaces(fstest.MapFS(m))); got != "[mlx5_ib] [eth0]" {
		t.Errorf("modules and interfaces: %s", got)
	}
	if _, err := sysDevices(fstest.MapFS{}); err == nil {
		t.Error("a kernel without RDMA has devices")
	}
}

// TestOddTrees: whatever the files contain, the input is bounded, and nothing panics.
func TestOddTrees(t *testing.T) {
	m := tree{}.device("odd0", "", "", "", "")
	m.put("class/infiniband/odd0", "node_guid", strings.Repeat("f", 1<<20), "fw_ver", "\x1b[2J\xff", "device/uevent", "DRIVER\n=\nDRIVER=", "mtu", "1")
	m.put("class/infiniband/odd0/ports", "x/state", "4: ACTIVE", "-1/state", "4: ACTIVE", "0/state", "4: ACTIVE", "2/state", ":")
	m.put("class/infiniband/odd0/ports/2/gids", "0", "no address", "1", "::", "3", v4)
	for i := range 2 * mostIndices {
		m.put("class/infiniband/odd0/ports/1/gids", fmt.Sprint(i), v4)
	}
	for i := range 2 * mostDevices {
		m.put(fmt.Sprintf("class/infiniband/many%d", i), "node_type", "1: CA")
	}
	for i := range 2 * mostPorts {
		m.put(fmt.Sprintf("class/infiniband/many0/ports/%d", i), "state", "4: ACTIVE")
	}
	m["class/infiniband/file"] = &fstest.MapFile{Data: []byte("no directory")}
	m["class/infiniband/many1/fw_ver"] = &fstest.MapFile{Mode: fs.ModeDir}
	all, err := sysDevices(fstest.MapFS(m))
	if err != nil || len(all) != mostDevices {
		t.Fatalf("%d devices, %v", len(all), err)
	}
	if got, err := sysDevices(fstest.MapFS(tree{}.put("class", "infiniband", "a file"))); err == nil {
		t.Errorf("devices of a file: %v", got)
	}
	odd := sysDevice(fstest.MapFS(m), "odd0", "")
	if len(odd.NodeGUID) != mostText || odd.guid != 0 || odd.Driver != "" || len(odd.Ports) != 2 {
		t.Errorf("%d bytes of a GUID, %#x, driver %q, %d ports", len(odd.NodeGUID), odd.guid, odd.Driver, len(odd.Ports))
	}
	if one := odd.Ports[0]; len(one.GIDs) != mostGIDs || !one.Cut {
		t.Errorf("%d GIDs, cut: %v", len(one.GIDs), one.Cut)
	}
	if two := odd.Ports[1]; len(two.GIDs) != 1 || two.GIDs[0].Address != "no address" || two.State != "" {
		t.Errorf("%+v", two)
	}
	if many := sysDevice(fstest.MapFS(m), "many0", ""); len(many.Ports) > mostPorts {
		t.Errorf("%d ports", len(many.Ports))
	}
	if netdevMTU(fstest.MapFS(m), "../infiniband/odd0") != 0 {
		t.Error("a name that leaves the directory")
	}
	var b strings.Builder
	r := &Report{Devices: []Device{odd}, subsystem: true}
	r.judgeDevices()
	if err := r.WriteText(&b); err != nil || strings.ContainsRune(b.String(), 0x1b) || !utf8.ValidString(b.String()) {
		t.Errorf("%v: what a terminal interprets is not escaped: %q", err, b.String())
	}
}
