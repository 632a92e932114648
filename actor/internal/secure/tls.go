package secure

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// TLS is one side's handshake in TLS mode, by crypto/tls. Certificates are checked and made here,
// and the user's code runs, so its methods may take long: not for an event loop. They are called
// one at a time. To end one that takes too long, cancel the context; then Close.
type TLS struct {
	ctx     context.Context // of all of the handshake, as crypto/tls has it
	cancel  context.CancelCauseFunc
	conn    *tls.QUICConn
	binding [sha256.Size]byte
	size    int // of a frame

	out          [][]byte // frames to send
	sent, taken  int      // bytes of TLS
	in           int      // frames
	suite        Suite
	seal         *Sealer // of the second level
	open         *Opener
	ours, theirs []byte // traffic secrets
	bound        bool   // the peer has named the same binding
	done         bool
	failed       error
}

// TLSPeer describes the connection to a handshake.
type TLSPeer struct {
	Binding        Binding
	Request, Reply Hello
	Receive        int    // bytes that a receive of the peer's holds
	ServerName     string // required of the server if the configuration names none
	Place          Place  // where it computes; nil: anywhere
	// Authorities are those of this handshake, in place of the configuration's. It is the user's.
	// nil: the configuration's
	Authorities func() *x509.CertPool
}

// NewTLSClient begins the connecting side's handshake, after the reply has come.
func NewTLSClient(ctx context.Context, c *tls.Config, p TLSPeer) (*TLS, error) {
	return newTLS(ctx, c, p, true)
}

// NewTLSServer begins the listening side's handshake, after the reply was sent.
func NewTLSServer(ctx context.Context, c *tls.Config, p TLSPeer) (*TLS, error) {
	return newTLS(ctx, c, p, false)
}

func newTLS(ctx context.Context, c *tls.Config, p TLSPeer, client bool) (*TLS, error) {
	if p.Receive < MinTLSFrame {
		return nil, &ConfigError{What: fmt.Sprintf("a handshake needs receives of %d bytes", MinTLSFrame)}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	u := &users{ctx, cancel, p.Place}
	c, err := u.prepareConfig(c)
	if err == nil && p.Authorities != nil {
		err = u.setAuthorities(c, p.Authorities)
	}
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if c.ServerName == "" {
		c.ServerName = p.ServerName
	}
	t := &TLS{ctx: ctx, cancel: cancel, binding: p.Binding.tlsParameters(p.Request, p.Reply), size: p.Receive}
	if client {
		t.conn = tls.QUICClient(&tls.QUICConfig{TLSConfig: c})
	} else {
		t.conn = tls.QUICServer(&tls.QUICConfig{TLSConfig: c})
	}
	t.conn.SetTransportParameters(append([]byte(nil), t.binding[:]...))
	if err := t.conn.Start(ctx); err != nil {
		t.Close()
		return nil, &ConfigError{What: "TLS", Err: err}
	}
	if err := t.handleEvents(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Next returns the next frame to send, or nil. It is the caller's. After a failure the last is an
// alert with the reason.
func (t *TLS) Next() []byte {
	if len(t.out) == 0 {
		return nil
	}
	frame := t.out[0]
	t.out = t.out[1:]
	return frame
}

// Done reports whether the peer is authenticated, as far as the configuration wants it to be. On
// the client this does not mean that the server takes the client.
func (t *TLS) Done() bool { return t.done }

// Take takes a frame of the peer's. An error is a *HandshakeError, and the same from then on.
func (t *TLS) Take(frame []byte) error {
	if t.failed != nil {
		return t.failed
	}
	level, body, err := t.admitFrame(frame)
	if err != nil {
		return t.fail(err)
	}
	if len(body) == 0 {
		return nil // a nudge
	}
	if err := t.conn.HandleData(tls.QUICEncryptionLevel(level), body); err != nil {
		return t.fail(&HandshakeError{"TLS", err})
	}
	return t.handleEvents()
}

// admitFrame takes the frame off the bytes, within bounds.
func (t *TLS) admitFrame(frame []byte) (level byte, body []byte, err error) {
	if t.done {
		return 0, nil, newHandshakeError("a frame after the end")
	}
	level, body, err = parseFrame(frame)
	if err != nil {
		return 0, nil, err
	}
	t.in++
	t.taken += len(body)
	if t.in > MaxTLSFrames || t.taken > MaxTLSBytes {
		return 0, nil, newHandshakeError("more than %d bytes or %d frames", MaxTLSBytes, MaxTLSFrames)
	}
	if level == levelInitial {
		return level, append([]byte(nil), body...), nil
	}
	if t.open == nil {
		return 0, nil, newHandshakeError("a sealed frame before there is a key")
	}
	body, err = t.open.Open(nil, body)
	if err != nil {
		return 0, nil, &HandshakeError{"a frame", err}
	}
	return level, body, nil
}

// handleEvents does what crypto/tls asks for.
func (t *TLS) handleEvents() error {
	for {
		e := t.conn.NextEvent()
		switch e.Kind {
		case tls.QUICNoEvent:
			return nil
		case tls.QUICErrorEvent:
			return t.fail(&HandshakeError{"TLS", e.Err})
		case tls.QUICHandshakeDone:
			if t.ctx.Err() != nil {
				return t.fail(newHandshakeError("too late"))
			}
			if !t.bound {
				return t.fail(newHandshakeError("the peer has not said what it is bound to"))
			}
			t.done = true
		default:
			if err := t.handleEvent(e); err != nil {
				return t.fail(err)
			}
		}
	}
}

func (t *TLS) handleEvent(e tls.QUICEvent) error {
	switch e.Kind {
	case tls.QUICTransportParameters:
		if t.bound = subtle.ConstantTimeCompare(e.Data, t.binding[:]) == 1; !t.bound {
			return newHandshakeError("the peer sees other addresses, another device or other hellos")
		}
	case tls.QUICWriteData:
		return t.writeFrames(byte(e.Level), e.Data)
	case tls.QUICSetReadSecret:
		return t.handleSecret(e, &t.theirs, func(s Suite) (err error) {
			t.open, err = NewOpener(s, e.Data)
			return err
		})
	case tls.QUICSetWriteSecret:
		return t.handleSecret(e, &t.ours, func(s Suite) (err error) {
			t.seal, err = NewSealer(s, e.Data)
			return err
		})
	}
	return nil
}

// handleSecret keeps a traffic secret, or uses one of the handshake's second level.
func (t *TLS) handleSecret(e tls.QUICEvent, traffic *[]byte, use func(Suite) error) error {
	switch e.Suite {
	case tls.TLS_AES_128_GCM_SHA256:
		t.suite = TLSAES128GCM
	case tls.TLS_AES_256_GCM_SHA384:
		t.suite = TLSAES256GCM
	case tls.TLS_CHACHA20_POLY1305_SHA256:
		t.suite = ChaCha20Poly1305
	default:
		return newHandshakeError("the cipher suite %#x", e.Suite)
	}
	switch e.Level {
	case tls.QUICEncryptionLevelHandshake:
		return use(t.suite)
	case tls.QUICEncryptionLevelApplication:
		*traffic = append([]byte(nil), e.Data...)
	}
	return nil
}

func (t *TLS) writeFrames(level byte, data []byte) (err error) {
	t.sent += len(data)
	if t.sent > MaxTLSBytes {
		return &ConfigError{What: fmt.Sprintf("a handshake of more than %d bytes: fewer certificates", MaxTLSBytes)}
	}
	var seal *Sealer
	if level != levelInitial {
		seal = t.seal
	}
	t.out, err = appendFrames(t.out, level, data, t.size, seal)
	return err
}

// fail notes the first error. All that is still to be sent is why.
func (t *TLS) fail(err error) error {
	if t.failed != nil {
		return t.failed
	}
	if t.ctx.Err() != nil {
		err = &HandshakeError{"given up", context.Cause(t.ctx)}
	}
	var failure *HandshakeError
	if !errors.As(err, &failure) {
		failure = &HandshakeError{"TLS", err}
	}
	t.failed = failure
	t.done = false
	alert := tls.AlertError(40) // handshake_failure
	if named, ok := errors.AsType[tls.AlertError](err); ok {
		alert = named
	}
	t.out = [][]byte{{frameAlert, byte(alert)}}
	t.forget()
	return t.failed
}

// Finish gives what follows the handshake, and whom TLS knows the peer as. It is called once, when
// Done.
func (t *TLS) Finish() (*Channel, tls.ConnectionState, error) {
	if t.failed != nil {
		return nil, tls.ConnectionState{}, t.failed
	}
	if !t.done || t.ours == nil || t.theirs == nil {
		return nil, tls.ConnectionState{}, newHandshakeError("it has not ended")
	}
	c, err := newChannel(t.suite, t.ours, t.theirs)
	t.forget()
	return c, t.conn.ConnectionState(), err
}

func (t *TLS) forget() {
	clear(t.ours)
	clear(t.theirs)
	t.ours, t.theirs = nil, nil
	if t.seal != nil {
		t.seal.Forget()
	}
	if t.open != nil {
		t.open.Forget()
	}
}

// Close ends a handshake, done or not, and its goroutines. The frames are still there.
func (t *TLS) Close() {
	_ = t.conn.Close() // its error is that of the handshake again
	t.cancel(nil)
	t.forget()
}
