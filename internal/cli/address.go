package cli

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Address is where a command connects to or listens.
type Address struct {
	// a name, or an IP address with its zone; "" is loopback to connect to, and every address to
	// listen on
	Host string
	Port string // a number or a service's name
}

// String returns HOST:PORT, with brackets around an IPv6 address.
func (a Address) String() string { return net.JoinHostPort(a.Host, a.Port) }

// ParseAddress reads an address as all commands take it: HOST:PORT, [IPV6]:PORT or :PORT. HOST,
// IPV6 and [IPV6] alone get the given port. A zone belongs to its IPv6 address: fe80::1%eth0. Port
// 0 means a free one, and is an error unless passive.
func ParseAddress(s, port string, passive bool) (Address, error) {
	a, err := splitAddress(s)
	if a.Port == "" {
		a.Port = port
	}
	if err == nil {
		err = checkPort(a.Port, passive)
	}
	if err != nil {
		return Address{}, fmt.Errorf("address %q: %w", s, err)
	}
	return a, nil
}

// splitAddress takes an address apart. Without a port, that is "".
func splitAddress(s string) (Address, error) {
	if inside, ok := strings.CutPrefix(s, "["); ok {
		host, behind, closed := strings.Cut(inside, "]")
		port, colon := strings.CutPrefix(behind, ":")
		switch {
		case !closed:
			return Address{}, errors.New("the bracket is not closed: [IPV6]:PORT")
		case !isIPv6(host):
			return Address{}, fmt.Errorf("%q is no IPv6 address, which is what brackets are for", host)
		case behind != "" && (!colon || port == ""):
			return Address{}, errors.New("behind the bracket comes :PORT, or nothing")
		}
		return Address{host, port}, nil
	}
	host, port, colon := strings.Cut(s, ":")
	switch {
	case !colon:
		return Address{Host: s}, nil
	case strings.Contains(port, ":"):
		if !isIPv6(s) {
			return Address{}, errors.New("not an IPv6 address; one with a port is written [IPV6]:PORT")
		}
		return Address{Host: s}, nil
	case port == "":
		return Address{}, errors.New("no port behind the colon")
	}
	return Address{host, port}, nil
}

func isIPv6(s string) bool {
	ip, err := netip.ParseAddr(s)
	return err == nil && ip.Is6()
}

// checkPort refuses numbers that are no ports. A name is looked up later, with the host's.
func checkPort(port string, passive bool) error {
	n, err := strconv.ParseInt(port, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return nil
	case err != nil || n < 0 || n > 1<<16-1:
		return fmt.Errorf("port %s: ports are 0 to 65535", port)
	case n == 0 && !passive:
		return errors.New("port 0: nobody can be reached there; it has a server take a free one")
	}
	return nil
}
