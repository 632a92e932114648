package network

import (
	"errors"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSources: the source that connect(2) chooses, or the reason for its failure. These are the
// answers of Linux 6.18 on a host with these addresses.
func TestSources(t *testing.T) {
	for _, c := range []struct {
		what, from, to string // from: the address bound to, or none
		want           string // a source, or an errno
	}{
		{"", "127.0.0.1", "10.9.9.2", "EINVAL"},
		{"", "127.0.0.1", "10.9.9.1", "127.0.0.1"},
		{"", "10.9.9.1", "127.0.0.1", "10.9.9.1"},
		{"", "::1", "fd09::2", "::1"},
		{"", "::1", "fd09::1", "::1"},
		{"", "fd09::1", "::1", "fd09::1"},
		{"the first address is the network's", "", "10.9.9.3", "10.9.9.1"},
		{"", "", "10.9.9.2", "10.9.9.1"},
		{"", "", "127.0.0.5", "127.0.0.1"},
		{"", "", "fd09::3", "fd09::3"},
		{"", "", "::ffff:10.9.9.2", "10.9.9.1"},
		{"", "fd09::1", "::ffff:10.9.9.2", "ENETUNREACH"},
		{"", "::ffff:10.9.9.1", "fd09::2", "EAFNOSUPPORT"},
		{"", "10.9.9.1", "99.9.9.9", "ENETUNREACH"},
		{"", "", "2001:db8::1", "ENETUNREACH"},
		{"the address is gone", "10.9.9.3", "10.9.9.2", "ENETUNREACH"},
		{"the address is gone", "fd09::3", "fd09::2", "fd09::3"},
	} {
		for _, typ := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
			r := newRig(t, 1, Config{})
			m := r.net.Machine("c", prefix("10.9.9.1/24"), prefix("10.9.9.3/24"), prefix("fd09::1/64"), prefix("fd09::3/64"))
			k := m.Process(Limits{}).Stack()
			to := netip.MustParseAddr(c.to)
			domain := unix.AF_INET
			if to.Is6() {
				domain = unix.AF_INET6
			}
			fd, err := k.Socket(domain, typ)
			r.must(err)
			if c.from != "" {
				from := netip.MustParseAddr(c.from)
				r.must(k.Bind(fd, sa(from, 0)))
				if c.what != "" {
					m.RemoveAddr(from)
				}
			}
			err = k.Connect(fd, sa(to, 9))
			got, _ := k.Local(fd)
			if name := outcome(err, got); name != c.want {
				t.Errorf("%s: from %q to %s: %s, want %s", c.what, c.from, c.to, name, c.want)
			}
		}
	}
}

// outcome returns a socket's source, or the name of the errno.
func outcome(err error, local unix.Sockaddr) string {
	var errno unix.Errno
	if errors.As(err, &errno) && errno != unix.EINPROGRESS {
		return unix.ErrnoName(errno)
	}
	if a, ok := local.(*unix.SockaddrInet4); ok {
		return netip.AddrFrom4(a.Addr).String()
	}
	return netip.AddrFrom16(local.(*unix.SockaddrInet6).Addr).Unmap().String()
}
