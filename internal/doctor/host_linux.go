package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid/ucm"
	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/internal/hostlimits"
	"github.com/rdmactor/rdmactor/internal/nldev"
	"github.com/rdmactor/rdmactor/verbs"
	"github.com/rdmactor/rdmactor/verbs/uverbs"
)

const (
	mostAddresses = 256
	// patience limits how long a device may take to open: a driver may hang with its adapter.
	patience = 10 * time.Second
)

// root is this host's file system.
var root = os.DirFS("/")

// examineHost examines this host.
func examineHost(ctx context.Context, cfg Config) (*Report, error) {
	r := &Report{User: os.Getuid(), Limits: processLimits(), Devices: []Device{}}
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		r.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	r.CM = examineCM() // first: it loads modules
	sys := os.DirFS("/sys")
	r.Modules, r.Netdevs = loadedModules(sys), upInterfaces(sys)
	if cfg.Library != nil {
		l := cfg.Library()
		r.Library = &l
	}
	devices, err := sysDevices(sys)
	switch {
	case errors.Is(err, unix.ENOENT):
		return r, nil
	case err != nil:
		return nil, fmt.Errorf("the devices in /sys: %w", err)
	}
	r.subsystem = true
	r.Devices = append(r.Devices, devices...)
	askKernel(r.Devices)
	for i := range r.Devices {
		d := &r.Devices[i]
		for n := range d.Ports {
			d.Ports[n].MTU = netdevMTU(sys, d.Ports[n].Netdev)
		}
		if err := openWithin(ctx, d, cfg); err != nil {
			return nil, err
		}
		for _, l := range hostlimits.RDMA(root, d.Name) {
			d.Groups = append(d.Groups, GroupLimit{l.Where, l.Resource, l.Max, l.Used})
		}
	}
	if r.CM.Error == "" {
		r.findAddresses()
	}
	return r, nil
}

// examineCM examines rdma_cm's device file.
func examineCM() Node {
	n := Node{Path: "/dev/infiniband/rdma_cm"}
	_, _, err := ucm.DeviceFor(netip.IPv6Unspecified()) // no device has that address: only the file
	// matters
	if e := (*ucm.OpenError)(nil); errors.As(err, &e) {
		n.Error, n.Way = fmt.Sprintf("open %s: %v", orPath(e.Path), e.Err), e.Remedy
	}
	return n
}

func orPath(path string) string {
	if path == "" {
		return "rdma_cm"
	}
	return path
}

// askKernel adds facts that sysfs does not contain. Without answers it adds nothing.
func askKernel(devices []Device) {
	known, _ := nldev.Devices()
	for i := range devices {
		d := &devices[i]
		for _, k := range known {
			if k.Name != d.Name {
				continue
			}
			if c, err := nldev.DataFile(k.Index); err == nil {
				if name := nldev.DriverName(c.Driver); name != "" {
					d.Driver = name
				}
			}
			netdevs, _ := nldev.Netdevs(k.Index)
			for n := range d.Ports {
				if name := netdevs[uint32(d.Ports[n].Number)]; name != "" {
					d.Ports[n].Netdev = name
				}
			}
		}
	}
}

// openWithin opens a device, and gives up when that takes too long. The goroutine that opens it is
// then left behind. The error is ctx's.
func openWithin(ctx context.Context, d *Device, cfg Config) error {
	done := make(chan Device, 1)
	go func(d Device) {
		d.openAndRegister(cfg)
		done <- d
	}(*d)
	select {
	case *d = <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(patience):
		d.Error = fmt.Sprintf("it was not opened within %v", patience)
		d.Way = "see dmesg: the driver or the adapter hangs"
		return nil
	}
}

// openAndRegister opens the device as a program does, and registers as much memory as a connection.
func (d *Device) openAndRegister(cfg Config) {
	l, err := eventloop.New()
	if err != nil {
		d.Error = err.Error()
		return
	}
	defer func() { _ = l.Shutdown(context.Background()) }()
	provider := cfg.Provider
	if provider == nil {
		provider = uverbs.Provider{}
	}
	dev, err := provider.Open(l, verbs.DeviceIdent{Name: d.Name, GUID: d.guid})
	if err == nil {
		d.Path = d.pathFor(cfg)
		d.Limits = capabilityOf(dev)
		var mr *verbs.MR
		if mr, err = dev.Alloc(perConnection, verbs.LocalWrite); err == nil {
			err = dev.Free(mr)
		}
		err = errors.Join(err, dev.Close())
	}
	if err != nil {
		d.Error, d.Way = strings.ReplaceAll(err.Error(), "\n", "; "), wayOut(err, cfg)
	}
}

// pathFor names the code that has opened the device.
func (d *Device) pathFor(cfg Config) string {
	if cfg.Provider == nil && (d.Driver == "rxe" || d.Driver == "siw") {
		return "uverbs"
	}
	return "libibverbs"
}

func capabilityOf(dev verbs.ProviderDevice) *Capability {
	a := dev.Attr()
	c := &Capability{
		QueuePairs: a.MaxQP, Outstanding: a.MaxQPWR, Reads: a.MaxRDAtom, Inline: a.MaxInline, Message: a.MaxMessage, Datagram: a.MaxDatagram,
		Immediate: a.Immediate, Atomics: a.Atomics,
	}
	if with, ok := dev.(interface{ Caps() hca.Caps }); ok {
		caps := with.Caps()
		c.CompletionQueues, c.Completions, c.MemoryRegions = caps.MaxCQ, caps.MaxCQE, caps.MaxMR
	}
	return c
}

// wayOut returns a remedy for the error of a device that could not be opened.
func wayOut(err error, cfg Config) string {
	if cfg.Remedy != nil {
		if way := cfg.Remedy(err); way != "" {
			return way
		}
	}
	group := (*uverbs.CgroupError)(nil)
	switch other, memory := (*uverbs.OtherDeviceError)(nil), (*uverbs.MemlockError)(nil); {
	case errors.As(err, &group):
		return fmt.Sprintf("raise it (`echo %s %s=max > %s`)", group.Device, group.Resource, group.File)
	case errors.As(err, &other):
		return `a program imports _ "github.com/rdmactor/rdmactor/native", which calls libibverbs. ` + Linked + " looks at the device with it"
	case errors.As(err, &memory):
		return unlock
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Sprintf("user %d needs read and write permission for /dev/infiniband/uverbs*: udev's rules of rdma-core give it (chmod 666 "+
			"until then); in a container, allow the device", os.Getuid())
	case errors.Is(err, unix.ENOENT):
		return "the device's file is not there: run udev, or pass /dev/infiniband to the container"
	case errors.Is(err, unix.ENODEV):
		return "modprobe ib_uverbs; see dmesg for a device that has gone"
	}
	return "see dmesg"
}

// findAddresses finds the devices' addresses by asking rdma_cm, as auto does.
func (r *Report) findAddresses() {
	all, _ := net.InterfaceAddrs()
	for i, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok || i >= mostAddresses {
			continue
		}
		ip, _ := netip.AddrFromSlice(n.IP)
		if ip = ip.Unmap(); ip.IsLoopback() || ip.IsLinkLocalUnicast() { // the latter needs a zone
			continue
		}
		name, ok, err := ucm.DeviceFor(ip)
		switch at := slices.IndexFunc(r.Devices, func(d Device) bool { return d.Name == name }); {
		case err != nil:
			r.unmatched = r.unmatched || errors.As(err, new(*ucm.NodeGUIDError))
		case !ok:
			r.plain = append(r.plain, ip)
		case at >= 0:
			r.Devices[at].Addresses = append(r.Devices[at].Addresses, ip.String())
		}
	}
}

// processLimits returns this process's limits.
func processLimits() (l Limits) {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim) == nil {
		l.LockedMemory = lim.Cur
	}
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil {
		l.OpenFiles = lim.Cur
	}
	l.MayLock = hostlimits.MayLock(root)
	if most, ok := hostlimits.Threads(root); ok {
		l.Threads, l.ThreadLimit = most.Left(), most.String()
	}
	return l
}
