package datapath

import "time"

// A device may overlook what comes while it makes a connection, until more comes
// (verbs.DeviceAttr.OverlooksFirst). The sender gets no error: its device has sent the message. So
// a side that has sent something, and has heard nothing by overlookTime after Established, sends a
// probe, as the keepalive would much later. With the probe the peer finds the message, and it
// answers.
//
// Who has sent nothing sends no probe: what comes to an initiator right behind the reply may end
// the connection on such a device.

// overlookTime is far above what a message and its answer take, and what such a device needs to
// make a connection.
const overlookTime = 250 * time.Millisecond

// watchFirst schedules firstProbe if c's device may overlook the first message.
func (b *heartbeat) watchFirst(c *Conn) {
	if c.Device.attr.OverlooksFirst && c.Session.Agreed() {
		c.l.el.AfterFunc(overlookTime, func() { b.firstProbe(c) })
	}
}

// firstProbe sends a probe if the peer may have overlooked something.
func (b *heartbeat) firstProbe(c *Conn) {
	if c.mayPost() && c.Out.Flight.nextNumber() != 0 && b.countSigns(c) == 0 {
		b.sendProbe(c)
	}
}
