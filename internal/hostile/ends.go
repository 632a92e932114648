package hostile

import "golang.org/x/sys/unix"

// terminates are exchanges in which the peer sends a Terminate, in every form.
var terminates = []Exchange{
	peerTerminates("Terminate", Term{ddp, untagged, 2}, termMsg(0x12, 2, 0, 0)),
	peerTerminates("Terminate with headers", Term{ddp, untagged, 3}, termMsg(append([]byte{0x12, 3, 0xc0, 0, 0, 18}, newULPDU(sendHeader(1, 0))...)...)),
	peerTerminates("Terminate of soft-iWARP's", Term{ddp, untagged, 2}, termMsg(append([]byte{0x21, 2, 3, 0, 0, 18}, newULPDU(sendHeader(1, 0))...)...)),
	peerTerminates("Terminate whose copy is missing", Term{ddp, untagged, 3}, termMsg(0x12, 3, 0xe0, 0)),
	peerTerminates("Terminate of an unknown kind", Term{15, 15, 255}, termMsg(0xff, 0xff, 0, 0)),
	peerTerminates("Terminate that is too long", Term{rdmap, 0, 0xff}, termMsg(append([]byte{0, 0xff, 0, 0}, zeros(60000)...)...)),
	peerTerminates("Terminate in the middle of a message", Term{mpa, 0, 5}, termMsg(0x20, 5, 0, 0), newULPDU(sendPartHeader(1, 0), 'x')),
	peerTerminates("Terminate, and more behind it", Term{mpa, 0, 5}, termMsg(0x20, 5, 0, 0), newULPDU(sendHeader(1, 0))),
}

// peerTerminates makes an exchange in which the peer ends the connection with u.
func peerTerminates(name string, t Term, u []byte, before ...[]byte) Exchange {
	return newExchange(name, "RFC 5040 4.8; it is not answered",
		Want{Outcome: Failed, Errno: unix.ECONNRESET, Term: t, ByPeer: true},
		goodStep(before...), func(p *Peer) { p.write(repeatFrame(p.frameULPDU(u))) })
}

// cutExchanges returns good exchanges that are cut off by FIN and by reset, at every place that
// matters.
func cutExchanges() []Exchange {
	const rule = "RFC 5044 7.3: cut off"
	middle := cutOff
	middle.Text = "in the middle of a message"
	first := goodStep(newULPDU(sendHeader(1, 0), 'a'))
	var list []Exchange
	for _, place := range []struct {
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
	} {
		h := sendPartHeader(2, 0)
		h.Last = place.last
		second := fragmentStep(newULPDU(h, zeros(9)...), place.at)
		list = append(list,
			newExchange("FIN "+place.name, rule, middle, first, second, settle, fin),
			newExchange("reset "+place.name, rule, cutOff, first, second, settle, reset))
	}
	return append(list,
		newExchange("FIN between messages", "RFC 5044 7.3", orderly, first, fin),
		newExchange("reset between messages", "RFC 5044 7.3", cutOff, first, settle, reset))
}
