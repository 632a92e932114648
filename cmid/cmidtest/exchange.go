package cmidtest

// exchange is an identifier's exchange of connection management messages with the other end.
type exchange struct {
	id       *driverID
	far      endpoint // the other end
	key      endpoint // the end whose request made this identifier; zero: none
	sent     packet   // repeated until it is answered
	tries    int
	patience int // how often the peer has asked for more time
}

func (x *exchange) newPacket(kind Message, m *message) packet {
	id := x.id
	return packet{kind: kind, by: id, from: id.self, to: x.far, src: id.local.Addr(), dst: id.peer.Addr(), cm: m}
}

// send sends a message to the other end.
func (x *exchange) send(kind Message, m *message) {
	x.id.in.f.sendPacket(x.newPacket(kind, m))
}

// sendStatus sends a message that has only a kind and a status.
func (x *exchange) sendStatus(kind Message, status int32) {
	x.send(kind, &message{status: status})
}

// sendAnswer sends a message. It is sent again whenever the peer repeats its own.
func (x *exchange) sendAnswer(kind Message, m *message) {
	x.sent = x.newPacket(kind, m)
	x.id.in.f.sendPacket(x.sent)
}

// sendUntilAnswered sends a message and repeats it. giveUp runs when no answer comes.
func (x *exchange) sendUntilAnswered(kind Message, m *message, giveUp func()) {
	x.sendAnswer(kind, m)
	x.repeat(func() { x.id.in.f.sendPacket(x.sent) }, giveUp)
}

// repeat calls send again and again, and at last giveUp. An answer stops the timer, and so ends it.
func (x *exchange) repeat(send, giveUp func()) {
	x.tries = 0
	var again func()
	again = func() {
		if x.tries++; x.tries > cmRetries {
			giveUp()
			return
		}
		x.id.setTimer(cmTimeout, again)
		send()
	}
	x.id.setTimer(cmTimeout, again)
}

// sendRequest sends a request to a listener. A cancellation goes to the listener too, until the
// reply names the other end (see instance.driverIDFor). A repeated request does not count against
// the backlog.
func (x *exchange) sendRequest(p packet, b *binding) {
	f := x.id.in.f
	p.to = b.owner
	if x.far != p.to {
		f.mu.Lock()
		b.unread++
		f.mu.Unlock()
		p.listener = b
	}
	if x.far = p.to; !f.sendPacket(p) {
		x.far = endpoint{}
	}
}

// requested returns the peer's identifier that an earlier REQ has made.
func (x *exchange) requested() (child endpoint, ok bool) {
	if x.far.in == nil {
		return child, false
	}
	asked, ok := x.far.in.host.requests.Load(x.id.self)
	if ok {
		child = asked.(endpoint)
	}
	return child, ok
}

// isPassive reports whether the identifier is a request's.
func (x *exchange) isPassive() bool { return x.key.in != nil }
