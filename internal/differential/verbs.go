package differential

import (
	"fmt"
	"strings"
	"time"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	rdma "github.com/rdmactor/rdmactor/verbs"
)

// verb is a command as programs write it.
type verb struct {
	args []string // those that the generator may draw
	make func(w *world, s *slot, arg string) cmid.Command
}

// verbs are the commands. create and qp are calls outside the state machine (see world.perform).
var verbs = map[string]verb{
	"create": {args: []string{""}},
	"qp":     {args: []string{""}},
	"bind": {
		args: []string{
			"any:0", "any:x", "dev:0", "dev:x", "dev:y", "any6:0", "any6:x", "lo:0", "lo:x", "second:0", "second:x", "plain:0",
			"foreign:0", "dev:p", "any:p", "second:p", "none",
		},
		make: func(w *world, _ *slot, arg string) cmid.Command { return &cmid.BindAddr{Addr: w.addr(arg)} },
	},
	"resolve": {
		args: []string{
			"dev:p", "dev:q", "dev:x", "second:p", "lo:p", "any:p", "v6:x", "none", "plain:p", "noarp:p", "second:0>dev:p", "any:x>dev:p",
			"plain:0>dev:p", "foreign:0>dev:p", "v6:0>dev:p",
		},
		make: func(w *world, _ *slot, arg string) cmid.Command {
			src, dst, ok := strings.Cut(arg, ">")
			if !ok {
				src, dst = "none", arg
			}
			return &cmid.ResolveAddr{Src: w.addr(src), Dst: w.addr(dst), Timeout: resolveTimeout}
		},
	},
	"route": {
		args: []string{""},
		make: func(*world, *slot, string) cmid.Command { return &cmid.ResolveRoute{Timeout: time.Second} },
	},
	"listen": {
		args: []string{"0", "1", "5000"},
		make: func(_ *world, _ *slot, arg string) cmid.Command { return &cmid.Listen{Backlog: number(arg)} },
	},
	"connect": {
		args: []string{"", "3", "max", "over", "d0", "3,d2", "d200"},
		make: func(w *world, s *slot, arg string) cmid.Command {
			data, param := w.connection(s, arg, s.id.Limits().ConnectData)
			return &cmid.Connect{PrivateData: data, Param: param}
		},
	},
	"accept": {
		args: []string{"", "3", "max", "over", "d0", "3,d2", "d200"},
		make: func(w *world, s *slot, arg string) cmid.Command {
			data, param := w.connection(s, arg, s.id.Limits().AcceptData)
			return &cmid.Accept{PrivateData: data, Param: param}
		},
	},
	"reject": {
		args: []string{"", "3", "max", "over", "ece"},
		make: func(_ *world, s *slot, arg string) cmid.Command {
			if arg == "ece" {
				return &cmid.Reject{VendorECE: true}
			}
			return &cmid.Reject{PrivateData: privateData(arg, s.id.Limits().RejectData)}
		},
	},
	"establish":  {[]string{""}, func(*world, *slot, string) cmid.Command { return &cmid.Establish{} }},
	"disconnect": {[]string{""}, func(*world, *slot, string) cmid.Command { return &cmid.Disconnect{} }},
	"destroy":    {[]string{""}, func(*world, *slot, string) cmid.Command { return &cmid.DestroyID{} }},
	"tos":        {[]string{"8", "256"}, option(cmid.OptionTOS)},
	"reuseaddr":  {[]string{"1", "0", "2"}, option(cmid.OptionReuseAddr)},
	"afonly":     {[]string{"1", "0", "2"}, option(cmid.OptionAFOnly)},
	"acktimeout": {[]string{"14", "32"}, option(cmid.OptionAckTimeout)},
	"notify": {
		args: []string{"established", "migrated"},
		make: func(_ *world, _ *slot, arg string) cmid.Command { return &cmid.Notify{PathMigrated: arg == "migrated"} },
	},
	"join": {
		args: []string{"group"},
		make: func(*world, *slot, string) cmid.Command { return &cmid.JoinMulticast{Addr: group} },
	},
	"leave": {
		args: []string{"group"},
		make: func(*world, *slot, string) cmid.Command { return &cmid.LeaveMulticast{Addr: group} },
	},
}

const resolveTimeout = 200 * time.Millisecond

var group = cmid.MustAddr("239.1.2.3:0")

func option(o cmid.Option) func(*world, *slot, string) cmid.Command {
	return func(_ *world, _ *slot, arg string) cmid.Command {
		return &cmid.SetOption{Option: o, Value: number(arg)}
	}
}

func number(arg string) int {
	n := 0
	if _, err := fmt.Sscan(arg, &n); err != nil {
		panic(fmt.Sprintf("differential: %q is not a number", arg))
	}
	return n
}

// addr returns the address that an argument names by host and port. It is zero if the argument
// names none.
func (w *world) addr(arg string) cmid.Addr {
	host, port, ok := strings.Cut(arg, ":")
	if !ok {
		return cmid.Addr{}
	}
	var num uint16
	switch port {
	case "0":
	case "y":
		num = w.rig.Ports[1]
	default: // x, or an identifier; the port is x's while that has none
		num = w.rig.Ports[0]
		if s := w.slots[port]; s != nil && s.id != nil && s.id.SrcPort() != 0 {
			num = s.id.SrcPort()
		}
	}
	return cmid.AddrFrom(w.rig.host(host), num)
}

// privateData returns as many bytes as an argument says.
func privateData(arg string, limit int) []byte {
	n := 0
	switch arg {
	case "", "d0", "d200":
	case "max":
		n = limit
	case "over":
		n = limit + 1
	default:
		n = number(arg)
	}
	data := make([]byte, n)
	for i := range data {
		data[i] = byte('a' + i%26)
	}
	return data
}

// connection returns the private data and parameters for connect and accept. Without a queue pair
// InfiniBand needs a number that no connection of this host has, or had a moment ago. The number is
// not compared.
func (w *world) connection(s *slot, arg string, limit int) ([]byte, *cmid.ConnParam) {
	data, depth, _ := strings.Cut(arg, ",")
	if strings.HasPrefix(data, "d") {
		data, depth = "", data
	}
	var p *cmid.ConnParam
	switch depth {
	case "d0":
		p = &cmid.ConnParam{RNRRetryCount: 7}
	case "d2":
		p = &cmid.ConnParam{ResponderResources: 2, InitiatorDepth: 1, RetryCount: 3, RNRRetryCount: 7}
	case "d200":
		p = &cmid.ConnParam{ResponderResources: 200, RNRRetryCount: 7}
	}
	if s.qp == nil && s.id.Flavor()&states.IWARP == 0 {
		if p == nil {
			p = &cmid.ConnParam{ResponderResources: 255, InitiatorDepth: 255, RetryCount: 7, RNRRetryCount: 7}
		}
		p.QPNum = nextQPN()
	}
	return privateData(data, limit), p
}

// createQP makes a queue pair with a completion queue that is drained at each notification.
func (s *slot) createQP() error {
	dev := s.id.Device()
	if dev == nil {
		return errNoDevice
	}
	var cq rdma.CQ
	var wc [4]rdma.WC
	cq, err := dev.CreateCQ(16, func() {
		for cq.Poll(wc[:]) > 0 {
		}
	})
	if err != nil {
		return err
	}
	qp, err := s.id.CreateQP(rdma.QPInitAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: 4, MaxRecvWR: 4})
	if err == nil {
		s.qp = qp
	}
	return err
}
