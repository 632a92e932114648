package hostile

import "golang.org/x/sys/unix"

// terminates is what comes of the peer's own Terminate, in every form (iwarp.md section 7).
var terminates = []Exchange{
	told("Terminate", Term{ddp, untagged, 2}, termMsg(0x12, 2, 0, 0)),
	told("Terminate with headers", Term{ddp, untagged, 3}, termMsg(append([]byte{0x12, 3, 0xc0, 0, 0, 18}, seg(send(1, 0))...)...)),
	told("Terminate of soft-iWARP's", Term{ddp, untagged, 2}, termMsg(append([]byte{0x21, 2, 3, 0, 0, 18}, seg(send(1, 0))...)...)),
	told("Terminate whose copy is missing", Term{ddp, untagged, 3}, termMsg(0x12, 3, 0xe0, 0)),
	told("Terminate of an unknown kind", Term{15, 15, 255}, termMsg(0xff, 0xff, 0, 0)),
	told("Terminate that is too long", Term{rdmap, 0, 0xff}, termMsg(append([]byte{0, 0xff, 0, 0}, zeros(60000)...)...)),
	told("Terminate in the middle of a message", Term{mpa, 0, 5}, termMsg(0x20, 5, 0, 0), seg(part(1, 0), 'x')),
	told("Terminate, and more behind it", Term{mpa, 0, 5}, termMsg(0x20, 5, 0, 0), seg(send(1, 0))),
}

// told is an exchange in which the peer ends the connection with u.
func told(name string, t Term, u []byte, before ...[]byte) Exchange {
	return Exchange{
		Name: name, Rule: "RFC 5040 4.8; it is not answered",
		Want: Want{Told: Failed, Errno: unix.ECONNRESET, Term: t, ByPeer: true},
		run: func(p *Peer) {
			p.good(before...)
			p.write(append(p.fpdu(u), p.fpdu(u)...))
		},
	}
}

// cuts is a good exchange that is cut off at every interesting place, by FIN and by reset.
func cuts() []Exchange {
	var list []Exchange
	places := []struct {
		name string
		at   int // bytes of an FPDU with 9 bytes of payload: 2 + 18 + 9 + 3 + 4
		last bool
	}{
		{"in an FPDU's length", 1, true},
		{"in an FPDU's headers", 13, true},
		{"before an FPDU's payload", 20, true},
		{"in an FPDU's payload", 25, true},
		{"in an FPDU's pad", 31, true},
		{"in an FPDU's CRC", 35, true},
		{"between two FPDUs of a message", 36, false},
	}
	for _, pl := range places {
		say := func(p *Peer) {
			h := part(2, 0)
			h.Last = pl.last
			p.good(seg(send(1, 0), 'a'))
			p.write(p.fpdu(seg(h, zeros(9)...))[:pl.at])
			p.settle()
		}
		gone := Want{Told: Failed, Errno: unix.ECONNRESET}
		middle := gone
		middle.Text = "in the middle of a message"
		list = append(
			list,
			Exchange{Name: "FIN " + pl.name, Rule: "RFC 5044 7.3: cut off", Want: middle, run: func(p *Peer) { say(p); p.fin() }},
			Exchange{Name: "reset " + pl.name, Rule: "RFC 5044 7.3: cut off", Want: gone, run: func(p *Peer) { say(p); p.reset() }},
		)
	}
	return append(
		list,
		Exchange{
			Name: "FIN between messages", Rule: "RFC 5044 7.3", Want: Want{Told: Orderly},
			run: func(p *Peer) { p.good(seg(send(1, 0), 'a')); p.fin() },
		},
		Exchange{
			Name: "reset between messages", Rule: "RFC 5044 7.3", Want: Want{Told: Failed, Errno: unix.ECONNRESET},
			run: func(p *Peer) { p.good(seg(send(1, 0), 'a')); p.settle(); p.reset() },
		},
	)
}
