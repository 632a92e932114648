package uverbs

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/hca"
	"github.com/rdmactor/rdmactor/verbs"
)

// CreateAH makes an address handle. The kernel resolves the destination's link address first, if
// it does not know it.
func (d *device) CreateAH(pd verbs.PD, attr *verbs.AHAttr) (verbs.AH, error) {
	later := d.CreateAHLater(pd, attr)
	return later.End(later.Wait())
}

var _ verbs.AHMaker = (*device)(nil)

// CreateAHLater is CreateAH, in parts.
func (d *device) CreateAHLater(pd verbs.PD, attr *verbs.AHAttr) verbs.LaterAH {
	p, err := d.domainOf(pd)
	switch gone := d.goneError(); {
	case gone != nil:
		err = gone
	case d.attr.MaxDatagram == 0:
		err = fmt.Errorf("uverbs: address handle on %s: %w", d.name, verbs.ErrNotSupported)
	}
	if err != nil {
		return verbs.LaterAH{
			Wait: func() error { return err },
			End:  func(err error) (verbs.AH, error) { return nil, err },
		}
	}
	a, hw, to := &addressHandle{pd: p}, d.hw, *attr
	p.users++
	return verbs.LaterAH{
		Wait: func() error {
			return hw.Aside(func(hw hca.Adapter) (err error) {
				a.AH, err = hw.CreateAH(p.handle, &to)
				return err
			})
		},
		End: func(err error) (verbs.AH, error) {
			if err != nil {
				p.users--
				return nil, fmt.Errorf("uverbs: %s: create_ah: %w", d.name, d.explainLimit(err))
			}
			return a, nil
		},
	}
}

// Made returns the device's address handle.
func (a *addressHandle) Made() hca.AH { return a.AH }

// Close destroys the handle.
func (a *addressHandle) Close() error {
	d := a.pd.dev
	if a.gone {
		return nil
	}
	if d.lost == nil && !d.closed {
		if err := d.hw.DestroyAH(a.Handle); err != nil {
			return fmt.Errorf("uverbs: %s: destroy_ah: %w", d.name, err)
		}
	}
	a.gone = true
	a.pd.users--
	return nil
}

// InitAHFromWC returns the address vector of a datagram's sender. The routing header is IPv6's, or
// in its last 20 bytes IPv4's.
func (d *device) InitAHFromWC(wc *verbs.WC, grh []byte) (verbs.AHAttr, error) {
	if d.attr.MaxDatagram == 0 {
		return verbs.AHAttr{}, fmt.Errorf("uverbs: address handle on %s: %w", d.name, verbs.ErrNotSupported)
	}
	if !wc.GRH || len(grh) < verbs.GRHLen {
		return verbs.AHAttr{}, fmt.Errorf("uverbs: datagram without a routing header: %w", unix.EINVAL)
	}
	src, dst, class, ok := parseRouting(grh[:verbs.GRHLen])
	if !ok {
		return verbs.AHAttr{}, fmt.Errorf("uverbs: neither an IPv4 nor an IPv6 header in front of a datagram: %w", unix.EINVAL)
	}
	index, err := d.gidIndex(dst)
	if err != nil {
		return verbs.AHAttr{}, err
	}
	const hops = 64
	return verbs.AHAttr{
		Global: true, Port: 1,
		GRH: verbs.GlobalRoute{DGID: src, SGIDIndex: index, HopLimit: hops, TrafficClass: class},
	}, nil
}

// parseRouting takes the addresses and the traffic class from a routing header. The bytes in front
// of an IPv4 header are zero or arbitrary; its checksum is not filled in for a datagram that never
// left the device.
func parseRouting(h []byte) (src, dst [16]byte, class uint8, ok bool) {
	ip := h[20:]
	six := h[0]>>4 == 6
	if ip[0] == 0x45 && (!six || headerChecksum(ip) == 0xffff) {
		src[10], src[11], dst[10], dst[11] = 0xff, 0xff, 0xff, 0xff
		copy(src[12:], ip[12:16])
		copy(dst[12:], ip[16:20])
		return src, dst, ip[1], true
	}
	if six {
		copy(src[:], h[8:24])
		copy(dst[:], h[24:40])
		return src, dst, h[0]<<4 | h[1]>>4, true
	}
	return src, dst, 0, false
}

// headerChecksum returns the ones' complement sum of an IPv4 header: all ones if it is right.
func headerChecksum(h []byte) uint16 {
	var sum uint32
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(h[i:]))
	}
	return uint16(sum>>16 + sum&0xffff)
}

func bitOf(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
