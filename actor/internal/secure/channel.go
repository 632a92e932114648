package secure

// Channel is one side of a connection after its handshake.
type Channel struct {
	Suite     Suite
	Seal      *Sealer
	Open      *Opener
	SealLarge *LargeSealer
	OpenLarge *LargeOpener
}

// newChannel seals with one traffic secret and opens with the other. It overwrites neither.
func newChannel(s Suite, out, in []byte) (*Channel, error) {
	c := &Channel{Suite: s, SealLarge: &LargeSealer{}, OpenLarge: &LargeOpener{}}
	var err error
	if c.Seal, err = NewSealer(s, out); err != nil {
		return nil, err
	}
	if c.Open, err = NewOpener(s, in); err != nil {
		return nil, err
	}
	if c.SealLarge.largeSecret, err = newLargeSecret(s, out); err != nil {
		return nil, &ConfigError{What: s.String(), Err: err}
	}
	if c.OpenLarge.largeSecret, err = newLargeSecret(s, in); err != nil {
		return nil, &ConfigError{What: s.String(), Err: err}
	}
	return c, nil
}

// Forget overwrites the secrets, when the connection has ended. Large messages that were begun can
// still be sealed and opened; no others can.
func (c *Channel) Forget() {
	c.Seal.Forget()
	c.Open.Forget()
	clear(c.SealLarge.secret)
	clear(c.OpenLarge.secret)
	c.SealLarge.forgotten, c.OpenLarge.forgotten = true, true
}
