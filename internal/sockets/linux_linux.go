package sockets

import (
	"crypto/rand"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const sockFlags = unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC

var _ Stack = (*Linux)(nil)

// Socket is socket(2).
func (*Linux) Socket(domain, typ int) (int, error) { return unix.Socket(domain, typ|sockFlags, 0) }

// Bind is bind(2).
func (*Linux) Bind(fd int, sa unix.Sockaddr) error { return unix.Bind(fd, sa) }

// Listen is listen(2).
func (*Linux) Listen(fd, backlog int) error { return unix.Listen(fd, backlog) }

// Connect is connect(2).
func (*Linux) Connect(fd int, sa unix.Sockaddr) error { return unix.Connect(fd, sa) }

// Shutdown is shutdown(2).
func (*Linux) Shutdown(fd, how int) error { return unix.Shutdown(fd, how) }

// Close is close(2).
func (*Linux) Close(fd int) error { return unix.Close(fd) }

// SetOption is setsockopt(2) of an int.
func (*Linux) SetOption(fd, level, opt, value int) error {
	return unix.SetsockoptInt(fd, level, opt, value)
}

// Option is getsockopt(2) of an int.
func (*Linux) Option(fd, level, opt int) (int, error) { return unix.GetsockoptInt(fd, level, opt) }

// SetLinger is setsockopt(2) of SO_LINGER.
func (*Linux) SetLinger(fd int, l *unix.Linger) error {
	return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, l)
}

// Unacknowledged is SIOCOUTQ.
func (*Linux) Unacknowledged(fd int) (int, error) { return unix.IoctlGetInt(fd, unix.SIOCOUTQ) }

// InterfaceIndex is SIOCGIFINDEX.
func (*Linux) InterfaceIndex(name string) (int, error) {
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return 0, err
	}
	if err := ioctlInterface(unix.SIOCGIFINDEX, ifr); err != nil {
		return 0, err
	}
	return int(ifr.Uint32()), nil
}

// InterfaceName is SIOCGIFNAME.
func (*Linux) InterfaceName(index int) (string, error) {
	ifr, err := unix.NewIfreq("")
	if err != nil {
		return "", err
	}
	ifr.SetUint32(uint32(index))
	if err := ioctlInterface(unix.SIOCGIFNAME, ifr); err != nil {
		return "", err
	}
	return ifr.Name(), nil
}

// ioctlInterface asks about an interface; any socket will do.
func ioctlInterface(req uint, ifr *unix.Ifreq) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|sockFlags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.IoctlIfreq(fd, req, ifr)
}

// EphemeralPorts is net.ipv4.ip_local_port_range as it was less than a second ago.
func (l *Linux) EphemeralPorts() (low, n int) {
	l.ports.refresh()
	return l.ports.low, l.ports.high - l.ports.low + 1
}

// ReservedPort reads net.ipv4.ip_local_reserved_ports as it was less than a second ago.
func (l *Linux) ReservedPort(port int) bool {
	l.ports.refresh()
	for _, r := range l.ports.reserved {
		if r[0] <= port && port <= r[1] {
			return true
		}
	}
	return false
}

// ports has the operator's settings for automatically chosen ports.
type ports struct {
	low, high int
	reserved  [][2]int // ranges, with both ends
	read      time.Time
}

// portsAge is how old ports may be. Reading them costs about as much as the rest of a bind.
const portsAge = time.Second

func (p *ports) refresh() {
	now := time.Now()
	if !p.read.IsZero() && now.Sub(p.read) < portsAge {
		return
	}
	*p = ports{low: 32768, high: 60999, read: now} // the kernel's defaults
	var low, high int
	if _, err := fmt.Sscan(readSysctl("ip_local_port_range"), &low, &high); err == nil && 1 <= low && low <= high && high <= 65535 {
		p.low, p.high = low, high
	}
	for r := range strings.SplitSeq(readSysctl("ip_local_reserved_ports"), ",") {
		from, to, isRange := strings.Cut(r, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err == nil && err2 == nil {
			p.reserved = append(p.reserved, [2]int{first, last})
		}
	}
}

// readSysctl reads a value of net.ipv4; "": there is none.
func readSysctl(name string) string {
	b, _ := os.ReadFile("/proc/sys/net/ipv4/" + name)
	return strings.TrimSpace(string(b))
}

// Random is getrandom(2).
func (*Linux) Random(b []byte) { _, _ = rand.Read(b) } // never fails
