package doctor

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdmactor/rdmactor/internal/plain"
)

const (
	// perConnection is the memory that a connection pins at first with the defaults of
	// rdma.IDConfig on a kernel device, on the side that connects: 48 receives of 16 KiB and a
	// header.
	perConnection = 48 * (16<<10 + 64)
	wantLocked    = 64 << 20 // is enough to start with
	wantFiles     = 256
	wantThreads   = 64
	wantObjects   = 32 // of a device: is enough to start with

	unlock = "ulimit -l unlimited (/etc/security/limits.conf), LimitMEMLOCK=infinity in systemd, --ulimit memlock=-1 for containers"
)

// judgeDevices determines which devices are usable, and lists the missing parts, the most serious
// first.
func (r *Report) judgeDevices() {
	r.Missing = []Missing{}
	for i := range r.Devices {
		d := &r.Devices[i]
		d.Error = withoutRemedy(d.Error, d.Way)
		d.Usable = r.CM.Error == "" && d.Error == "" && d.Path != "" && slices.ContainsFunc(d.Ports, Port.isActive) && len(d.Addresses) > 0
		r.Usable = r.Usable || d.Usable
	}
	if l := r.Library; l != nil {
		l.Error = withoutRemedy(l.Error, l.Way)
	}
	if len(r.Devices) == 0 {
		r.noDevices()
	}
	if r.CM.Error != "" && r.subsystem {
		r.addMissing("connections cannot be made: "+r.CM.Error, r.CM.Way)
	}
	if l := r.Library; l != nil && l.Error != "" {
		r.addMissing("libibverbs cannot be used: "+l.Error, l.Way)
	}
	for i := range r.Devices {
		r.judgeDevice(&r.Devices[i])
	}
	if !r.Limits.MayLock && r.Limits.LockedMemory < wantLocked {
		r.addMissing(fmt.Sprintf("RLIMIT_MEMLOCK is %d bytes: a connection pins %.1f MB, so there is room for some %d",
			r.Limits.LockedMemory, float64(perConnection)/1e6, r.Limits.LockedMemory/perConnection), unlock)
	}
	if r.Limits.OpenFiles < wantFiles {
		r.addMissing(fmt.Sprintf("this process may have %d open files", r.Limits.OpenFiles), "ulimit -n 1024, LimitNOFILE= in systemd")
	}
	if r.Limits.ThreadLimit != "" && r.Limits.Threads < wantThreads {
		r.addMissing(fmt.Sprintf("this process may start %d more threads: %s", r.Limits.Threads, r.Limits.ThreadLimit),
			"TasksMax= in systemd, --pids-limit for containers, ulimit -u for a user")
	}
}

// withoutRemedy returns an error without its remedy, which is reported separately.
func withoutRemedy(err, way string) string { return strings.TrimSuffix(err, ": "+way) }

func (r *Report) addMissing(what, way string) { r.Missing = append(r.Missing, Missing{what, way}) }

// noDevices reports how to get a device.
func (r *Report) noDevices() {
	netdev := "NETDEV"
	if len(r.Netdevs) > 0 {
		netdev = r.Netdevs[0]
	}
	way := "the embedded device needs none and works here: --device iwarp, which auto takes. " +
		"For an adapter load its driver (modprobe mlx5_ib, irdma, bnxt_re ...). " +
		"For a software device over Ethernet, as root: modprobe rdma_rxe && rdma link add rxe0 type rxe netdev " + netdev +
		". In a container do so on its host, and pass /dev/infiniband in"
	if !r.subsystem {
		r.addMissing("the kernel has no RDMA: the module ib_core is not loaded", way)
		return
	}
	r.addMissing("no RDMA device", way)
}

// judgeDevice reports the missing parts of a device.
func (r *Report) judgeDevice(d *Device) {
	if d.Error != "" {
		r.addMissing(d.Name+" has no data path here: "+d.Error, d.Way)
	} else {
		r.judgeGroups(d)
	}
	netdev := "NETDEV"
	for _, p := range d.Ports {
		if p.Netdev != "" {
			netdev = p.Netdev
		}
	}
	switch {
	case len(d.Ports) == 0:
		r.addMissing(d.Name+" has no port", "see dmesg: its driver has not finished")
		return
	case !slices.ContainsFunc(d.Ports, Port.isActive):
		way := "ip link set " + netdev + " up; see that the cable is in and that the other end is up"
		if d.Transport == "InfiniBand" {
			way = "a port in INIT waits for a subnet manager (opensm, or the switch's); one that is DOWN has no cable or no peer"
		}
		r.addMissing(fmt.Sprintf("%s has no active port: %s", d.Name, portStates(d.Ports)), way)
	}
	switch {
	case len(d.Addresses) > 0, r.CM.Error != "":
	case d.guid == 0 && r.unmatched:
		r.addMissing(d.Name+" cannot be found by its addresses: its node GUID is 0, and the kernel does not report its index (Linux before 5.9, or no netlink here)",
			"for a function of SR-IOV, on its host: ip link set PF vf N node_guid 02:00:00:00:00:00:00:01, then unbind the function from its driver and bind it again")
	default:
		what := d.Name + " has no IP address that rdma_cm would find it by"
		way := "ip addr add 192.0.2.1/24 dev " + netdev
		if d.Transport == "InfiniBand" {
			way = "load ib_ipoib and give its interface one: ip addr add 192.0.2.1/24 dev ib0"
		}
		r.addMissing(what, way)
	}
}

// judgeGroups reports the control group that leaves too little of a device.
func (r *Report) judgeGroups(d *Device) {
	for _, g := range d.Groups {
		want := uint64(wantObjects)
		if g.Resource == "hca_handle" {
			want = 1 // a loop opens a device once
		}
		if g.Max-min(g.Used, g.Max) < want {
			r.addMissing(fmt.Sprintf("%s in %s allows %d for %s, and %d are used: a program needs %d at least to begin with",
				g.Resource, g.File, g.Max, d.Name, g.Used, want), fmt.Sprintf("echo %s %s=max > %s", d.Name, g.Resource, g.File))
		}
	}
}

func (p Port) isActive() bool { return p.State == "ACTIVE" }

// portStates lists the ports' states.
func portStates(ports []Port) string {
	var all []string
	for _, p := range ports {
		all = append(all, fmt.Sprintf("port %d is %s", p.Number, plain.Or(p.State)))
	}
	return strings.Join(all, ", ")
}

// unlimited is RLIM_INFINITY.
const unlimited = math.MaxUint64
