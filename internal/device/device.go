// Package device chooses the kind of device that a program's identifiers use, which is its flag
// --device.
package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/iwarp"
)

// Kind is a value of --device.
type Kind string

// The kinds.
const (
	Auto   Kind = "auto"   // Kernel if the address belongs to an RDMA device, else IWARP
	IWARP  Kind = "iwarp"  // the embedded device: any address of the host, no privilege
	Kernel Kind = "kernel" // the kernel's rdma_cm, which picks the RDMA device by the address
)

// Usage is the flag's help.
const Usage = "`KIND` of device: iwarp (embedded in this program), kernel (an RDMA device of this host), or " +
	"auto (kernel if the address belongs to an RDMA device, otherwise iwarp)"

// Check returns an error for an unknown kind.
func (k Kind) Check() error {
	switch k {
	case Auto, IWARP, Kernel:
		return nil
	}
	return fmt.Errorf("--device %s: want auto, iwarp or kernel (which RDMA device it is depends on the address)", string(k))
}

// Choice is a kind of device, and why it was taken.
type Choice struct {
	Kind Kind // IWARP or Kernel
	// the connections' address on this host; not valid when it is unknown or any
	Local netip.Addr
	Why   string       // text for people; "" when the user has chosen
	IWARP iwarp.Config // configures the embedded device; its defaults unless the program changes it
}

// String returns the line for the user: "device: iwarp (no RDMA device has 127.0.0.1)".
func (c Choice) String() string {
	if c.Why == "" {
		return "device: " + string(c.Kind)
	}
	return fmt.Sprintf("device: %s (%s)", c.Kind, c.Why)
}

// Driver makes the driver; nothing is opened yet.
func (c Choice) Driver() cmid.Driver {
	if c.Kind == Kernel {
		return kernelDriver()
	}
	return iwarp.New(c.IWARP)
}

// host is the part of this host that a choice depends on.
type host interface {
	// findDevice finds the RDMA device that has a local address. The error states why rdma_cm
	// cannot be used.
	findDevice(local netip.Addr) (name string, ok bool, err error)
	// sourceFor returns the local address that connections to peer come from.
	sourceFor(peer netip.Addr) (netip.Addr, error)
	// hostAddrs returns the host's addresses, loopback excepted.
	hostAddrs() ([]netip.Addr, error)
}

// Dialling chooses for connections to peer. They come from local, or if that is not valid, from the
// source address of the route.
func Dialling(k Kind, local, peer netip.Addr) (Choice, error) {
	return chooseForDial(thisHost{}, k, local, peer)
}

// Listening chooses for connections to a local address. For a wildcard, or an address that is not
// valid, Auto takes the kernel's devices if one of them has an address of this host, because a
// listener on a wildcard then serves those devices.
func Listening(k Kind, local netip.Addr) (Choice, error) {
	return chooseForListen(thisHost{}, k, local)
}

// Named chooses by "host:port", the form of Dial and Serve of actors, and looks names up. passive:
// the address is to listen on. Only Auto needs the address.
func Named(ctx context.Context, k Kind, addr string, passive bool) (Choice, error) {
	if k != Auto {
		return Choice{Kind: k}, k.Check()
	}
	name, port, err := net.SplitHostPort(addr)
	if err != nil {
		return Choice{}, err
	}
	list, err := LookupAll(ctx, cmid.PortSpaceTCP, name, port, passive)
	if err != nil {
		return Choice{}, err
	}
	if passive {
		return Listening(k, list[0].Addr())
	}
	return diallingAny(thisHost{}, list)
}

// diallingAny chooses for connections to one of several addresses, which are tried in turn: Kernel
// if one of them belongs to an RDMA device, otherwise the choice for the first one with a route.
func diallingAny(h host, list []cmid.Addr) (c Choice, err error) {
	var errs error
	found := false
	for _, a := range list {
		one, err := chooseForDial(h, Auto, netip.Addr{}, a.Addr())
		switch {
		case err != nil:
			errs = errors.Join(errs, err)
		case one.Kind == Kernel:
			return one, nil
		case !found:
			found, c = true, one
		}
	}
	if found {
		return c, nil
	}
	return Choice{}, errs
}

// Lookup resolves a name and a port or service: to an address to listen on when passive, else to
// one to connect to. It is the first of LookupAll.
func Lookup(ctx context.Context, ps cmid.PortSpace, name, port string, passive bool) (cmid.Addr, error) {
	list, err := LookupAll(ctx, ps, name, port, passive)
	if err != nil {
		return cmid.Addr{}, err
	}
	return list[0], nil
}

// LookupAll is Lookup for all addresses of the name, one at least, in the order to try them.
func LookupAll(ctx context.Context, ps cmid.PortSpace, name, port string, passive bool) ([]cmid.Addr, error) {
	hints := &cmid.AddrInfo{PortSpace: ps}
	if passive {
		hints.Flags = cmid.RAIPassive
	}
	list, err := cmid.LookupAddrInfo(ctx, name, port, hints)
	if err != nil {
		return nil, err
	}
	all := make([]cmid.Addr, len(list))
	for i, info := range list {
		all[i] = info.Dst
		if passive {
			all[i] = info.Src
		}
	}
	if passive { // IPv4 first, as net.Listen does
		slices.SortStableFunc(all, func(a, b cmid.Addr) int { return cmp.Compare(a.Family(), b.Family()) })
	}
	return all, nil
}

// Any chooses for connections of this host with itself. Choice.Local is an address for them, and
// always valid.
func Any(k Kind) (Choice, error) { return chooseAny(thisHost{}, k) }

func chooseForDial(h host, k Kind, local, peer netip.Addr) (Choice, error) {
	if err := k.Check(); err != nil {
		return Choice{}, err
	}
	if peer.Is6() && peer.IsLinkLocalUnicast() && peer.Zone() == "" {
		return Choice{}, fmt.Errorf("%v is on every interface's link: add %%INTERFACE, as in %v%%eth0 (%w)", peer, peer, unix.EINVAL)
	}
	if !local.IsValid() || local.IsUnspecified() {
		var err error
		if local, err = h.sourceFor(peer); err != nil {
			return Choice{}, fmt.Errorf("no way to %v: %w", peer, err)
		}
	}
	if k != Auto {
		return Choice{Kind: k, Local: local}, nil
	}
	return chooseOwned(h, local), nil
}

func chooseForListen(h host, k Kind, local netip.Addr) (Choice, error) {
	switch err := k.Check(); {
	case err != nil:
		return Choice{}, err
	case k != Auto:
		return Choice{Kind: k, Local: local}, nil
	case local.IsValid() && !local.IsUnspecified():
		return chooseOwned(h, local), nil
	}
	found, err := findOwners(h)
	c := Choice{Kind: IWARP, Local: local, Why: noneReason(err)}
	if len(found) > 0 {
		var names []string
		for _, f := range found {
			names = append(names, fmt.Sprintf("%s has %v", f.name, f.addr))
		}
		c.Kind, c.Why = Kernel, strings.Join(names, ", ")+"; other addresses need --device iwarp"
	}
	return c, nil
}

func chooseAny(h host, k Kind) (Choice, error) {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	switch err := k.Check(); {
	case err != nil:
		return Choice{}, err
	case k == IWARP:
		return Choice{Kind: k, Local: loopback}, nil
	}
	found, err := findOwners(h)
	switch {
	case len(found) > 0:
		c := Choice{Kind: Kernel, Local: found[0].addr}
		if k == Auto {
			c.Why = fmt.Sprintf("%s has %v", found[0].name, found[0].addr)
		}
		return c, nil
	case k == Kernel && err != nil:
		return Choice{}, err
	case k == Kernel:
		return Choice{}, errors.New("--device kernel: no RDMA device has an address of this host")
	}
	return Choice{Kind: IWARP, Local: loopback, Why: noneReason(err)}, nil
}

// chooseOwned chooses by the device that has the local address.
func chooseOwned(h host, local netip.Addr) Choice {
	c := Choice{Kind: IWARP, Local: local, Why: fmt.Sprintf("no RDMA device has %v", local)}
	if local.IsLoopback() {
		return c
	}
	switch name, ok, err := h.findDevice(local); {
	case err != nil:
		c.Why = noneReason(err)
	case ok:
		c.Kind, c.Why = Kernel, fmt.Sprintf("%s has %v", name, local)
	}
	return c
}

// owner is an RDMA device, and the first of its addresses that was found.
type owner struct {
	name string
	addr netip.Addr
}

// findOwners finds the RDMA devices that have an address of this host.
func findOwners(h host) (found []owner, err error) {
	addrs, err := h.hostAddrs()
	if err != nil {
		return nil, err
	}
	known := make(map[string]bool)
	for _, a := range addrs {
		name, ok, err := h.findDevice(a)
		if err != nil {
			return nil, err
		}
		if ok && !known[name] {
			known[name] = true
			found = append(found, owner{name, a})
		}
	}
	return found, nil
}

// noneReason returns the reason why no RDMA device is used. An error only changes this text.
func noneReason(err error) string {
	if err != nil {
		return "no kernel devices: " + err.Error()
	}
	return "no RDMA device has an address of this host"
}
