package network

import (
	"time"

	"golang.org/x/sys/unix"
)

// Numbers of Linux that other systems' headers lack.
const (
	soDomain       = 39
	tcpUserTimeout = 18
	tcpKeepIdle    = 4
	tcpKeepIntvl   = 5
	tcpKeepCnt     = 6
	tcpQuickAck    = 12
)

// Linux's minimum sizes of buffers.
const (
	leastSend    = 4608
	leastReceive = 2304
)

type optionName struct{ level, opt int }

// setOption implements setsockopt(2) for an int.
func (s *sock) setOption(level, opt, value int) error {
	on, o := value != 0, &s.options
	switch (optionName{level, opt}) {
	case optionName{unix.SOL_SOCKET, unix.SO_REUSEADDR}:
		o.reuse = on
	case optionName{unix.SOL_SOCKET, unix.SO_KEEPALIVE}:
		o.keepAlive = on
		s.armTimer()
	case optionName{unix.SOL_SOCKET, unix.SO_SNDBUF}:
		o.sndbuf = max(2*value, leastSend)
		s.out.size = o.sndbuf
	case optionName{unix.SOL_SOCKET, unix.SO_RCVBUF}:
		o.rcvbuf = max(2*value, leastReceive)
		s.in.size = max(o.rcvbuf, int(s.in.shown-s.in.before))
	case optionName{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY}:
		switch {
		case s.domain != unix.AF_INET6:
			return unix.ENOPROTOOPT
		case s.local.Port() != 0:
			return unix.EINVAL
		}
		o.v6only = on
	case optionName{unix.IPPROTO_IPV6, unix.IPV6_TCLASS}:
		if s.domain != unix.AF_INET6 {
			return unix.ENOPROTOOPT
		}
		o.class = value
	case optionName{unix.IPPROTO_IP, unix.IP_TOS}:
		o.tos = value
	default:
		if level != unix.IPPROTO_TCP || s.dgram {
			return unix.ENOPROTOOPT
		}
		return s.setTCP(opt, value)
	}
	return nil
}

func (s *sock) setTCP(opt, value int) error {
	o := &s.options
	switch opt {
	case unix.TCP_NODELAY:
		o.noDelay = value != 0
	case tcpQuickAck:
		o.quickAck = value != 0
	case tcpUserTimeout:
		if value < 0 {
			return unix.EINVAL
		}
		o.userTimeout = time.Duration(value) * time.Millisecond
	case tcpKeepIdle:
		return s.setKeep(&o.keepIdle, value)
	case tcpKeepIntvl:
		return s.setKeep(&o.keepInterval, value)
	case tcpKeepCnt:
		if value < 1 || value > 127 {
			return unix.EINVAL
		}
		o.keepCount = value
	case unix.TCP_MAXSEG:
		if value < 88 || value > 32767 {
			return unix.EINVAL
		}
	default:
		return unix.ENOPROTOOPT
	}
	s.armTimer()
	return nil
}

func (s *sock) setKeep(d *time.Duration, secs int) error {
	if secs < 1 || secs > 32767 {
		return unix.EINVAL
	}
	*d = time.Duration(secs) * time.Second
	s.armTimer()
	return nil
}

// intOption implements getsockopt(2) for an int.
func (s *sock) intOption(level, opt int) (int, error) {
	o := &s.options
	switch (optionName{level, opt}) {
	case optionName{unix.SOL_SOCKET, unix.SO_ERROR}:
		n := int(s.err)
		s.err = 0
		return n, nil
	case optionName{unix.SOL_SOCKET, soDomain}:
		return s.domain, nil
	case optionName{unix.SOL_SOCKET, unix.SO_TYPE}:
		if s.dgram {
			return unix.SOCK_DGRAM, nil
		}
		return unix.SOCK_STREAM, nil
	case optionName{unix.SOL_SOCKET, unix.SO_REUSEADDR}:
		return boolToInt(o.reuse), nil
	case optionName{unix.SOL_SOCKET, unix.SO_KEEPALIVE}:
		return boolToInt(o.keepAlive), nil
	case optionName{unix.SOL_SOCKET, unix.SO_ACCEPTCONN}:
		return boolToInt(s.state == stateListen), nil
	case optionName{unix.SOL_SOCKET, unix.SO_SNDBUF}:
		return s.out.size, nil
	case optionName{unix.SOL_SOCKET, unix.SO_RCVBUF}:
		return s.in.size, nil
	case optionName{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY}:
		return boolToInt(o.v6only), nil
	case optionName{unix.IPPROTO_IPV6, unix.IPV6_TCLASS}:
		return o.class, nil
	case optionName{unix.IPPROTO_IP, unix.IP_TOS}:
		return o.tos, nil
	}
	if level != unix.IPPROTO_TCP || s.dgram {
		return 0, unix.ENOPROTOOPT
	}
	return s.optionTCP(opt)
}

func (s *sock) optionTCP(opt int) (int, error) {
	o := &s.options
	switch opt {
	case unix.TCP_NODELAY:
		return boolToInt(o.noDelay), nil
	case tcpQuickAck:
		return boolToInt(o.quickAck), nil
	case tcpUserTimeout:
		return int(o.userTimeout / time.Millisecond), nil
	case tcpKeepIdle:
		return int(o.keepIdle / time.Second), nil
	case tcpKeepIntvl:
		return int(o.keepInterval / time.Second), nil
	case tcpKeepCnt:
		return o.keepCount, nil
	case unix.TCP_MAXSEG:
		return s.mss, nil
	}
	return 0, unix.ENOPROTOOPT
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// drawChildBuffers draws the sizes of an accepted socket's buffers, unless they are set on the
// listener.
func (s *sock) drawChildBuffers() (snd, rcv int) {
	if snd = s.options.sndbuf; snd == 0 {
		snd = s.m.net.drawBufferSize()
	}
	if rcv = s.options.rcvbuf; rcv == 0 {
		rcv = s.m.net.drawBufferSize()
	}
	return snd, rcv
}
