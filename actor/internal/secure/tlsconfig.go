package secure

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
)

// ALPN is the protocol that both sides name.
const ALPN = "rdmactor/1"

// prepareConfig restricts a copy of c: TLS 1.3, this ALPN, no resumption, guarded user code.
func (u *users) prepareConfig(c *tls.Config) (*tls.Config, error) {
	if c == nil {
		return nil, &ConfigError{What: "no TLS configuration"}
	}
	if c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS13 {
		return nil, &ConfigError{What: "a TLS configuration without TLS 1.3"}
	}
	c = c.Clone()
	c.MinVersion, c.MaxVersion = tls.VersionTLS13, tls.VersionTLS13
	c.NextProtos = []string{ALPN}
	c.SessionTicketsDisabled, c.ClientSessionCache = true, nil
	u.containCalls(c)
	if err := context.Cause(u.ctx); err != nil {
		return nil, &HandshakeError{"TLS", err}
	}
	return c, nil
}

// setAuthorities sets c to the current authorities.
func (u *users) setAuthorities(c *tls.Config, authorities func() *x509.CertPool) error {
	pool, err := callGuarded(u, "Authorities", func() (*x509.CertPool, error) { return authorities(), nil })
	if err == nil && pool == nil { // crypto/tls would take the system's
		err = &ConfigError{What: "Authorities has returned none"}
	}
	if err != nil {
		return &HandshakeError{"TLS", err}
	}
	c.RootCAs, c.ClientCAs = pool, pool
	return nil
}

// users calls user code on separate goroutines, because it may block: its look-up of a certificate,
// its check of the peer and its private key.
type users struct {
	ctx    context.Context
	cancel context.CancelCauseFunc // ends code that cannot fail otherwise
	place  Place                   // nil: there is none
}

// Place is where a handshake computes. Others can have it while the user's code runs.
type Place interface {
	Leave()
	Return()
}

// containCalls contains the calls of c's functions. c is a local copy.
func (u *users) containCalls(c *tls.Config) {
	if get := c.GetCertificate; get != nil {
		c.GetCertificate = func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return callGuarded(u, "GetCertificate", func() (*tls.Certificate, error) { return u.containCertificate(get(h)) })
		}
	}
	if get := c.GetClientCertificate; get != nil {
		c.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return callGuarded(u, "GetClientCertificate", func() (*tls.Certificate, error) { return u.containCertificate(get(r)) })
		}
	}
	if get := c.GetConfigForClient; get != nil {
		c.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			other, err := callGuarded(u, "GetConfigForClient", func() (*tls.Config, error) { return get(h) })
			if other == nil || err != nil {
				return nil, err
			}
			return u.prepareConfig(other)
		}
	}
	if verify := c.VerifyPeerCertificate; verify != nil {
		c.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) error {
			return u.guardCall("VerifyPeerCertificate", func() error { return verify(raw, chains) })
		}
	}
	if verify := c.VerifyConnection; verify != nil {
		c.VerifyConnection = func(s tls.ConnectionState) error {
			return u.guardCall("VerifyConnection", func() error { return verify(s) })
		}
	}
	c.Certificates = append([]tls.Certificate(nil), c.Certificates...)
	for i := range c.Certificates {
		c.Certificates[i] = u.withSigner(c.Certificates[i])
	}
}

func (u *users) guardCall(what string, call func() error) error {
	_, err := callGuarded(u, what, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// containCertificate returns a certificate of the user's code whose signer is contained.
func (u *users) containCertificate(c *tls.Certificate, err error) (*tls.Certificate, error) {
	if c == nil || err != nil {
		return nil, err
	}
	safe := u.withSigner(*c)
	return &safe, nil
}

// signer is a private key. crypto/tls calls it on a separate goroutine, where a panic would end
// the process.
type signer struct {
	key    crypto.Signer
	of     *users
	public crypto.PublicKey
}

func (s signer) Public() crypto.PublicKey { return s.public }

func (s signer) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return callKey(s.of, s.key, func() ([]byte, error) { return s.key.Sign(random, digest, opts) })
}

const privateKey = "the private key"

// messageSigner is one that is given the message instead of its hash.
type messageSigner struct {
	signer
	messages crypto.MessageSigner
}

func (s messageSigner) SignMessage(random io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	return callKey(s.of, s.key, func() ([]byte, error) { return s.messages.SignMessage(random, message, opts) })
}

// withSigner wraps the private key of c, which may behave arbitrarily.
func (u *users) withSigner(c tls.Certificate) tls.Certificate {
	key, ok := c.PrivateKey.(crypto.Signer)
	if !ok {
		return c // crypto/tls refuses it
	}
	public, err := callKey(u, key, func() (crypto.PublicKey, error) {
		public := key.Public()
		_, err := x509.MarshalPKIXPublicKey(public) // crypto/tls panics if it is half made
		return public, err
	})
	if err != nil {
		public = nil // crypto/tls refuses it
		u.cancel(fmt.Errorf("%s: %w", privateKey, err))
	}
	own := signer{key, u, public}
	if messages, ok := key.(crypto.MessageSigner); ok {
		c.PrivateKey = messageSigner{own, messages}
	} else {
		c.PrivateKey = own
	}
	return c
}

// callKey calls a private key: one of the standard library's, which computes, in place, and one of
// a user's type, in a device or elsewhere, as other user code.
func callKey[T any](u *users, key crypto.Signer, call func() (T, error)) (T, error) {
	switch key.(type) {
	case *ecdsa.PrivateKey, ed25519.PrivateKey, *rsa.PrivateKey:
		return containPanic(privateKey, call)
	}
	return callGuarded(u, privateKey, call)
}

// containPanic calls code that always returns, and converts its panic to an error.
func containPanic[T any](what string, call func() (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s has panicked: %v", what, p)
		}
	}()
	return call()
}

// callGuarded calls user code. A panic is an error, and so is not returning before ctx is done.
// Then it is left behind on its goroutine.
func callGuarded[T any](u *users, what string, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		r := result{err: fmt.Errorf("%s has not returned", what)}
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("%s has panicked: %v", what, p)
			}
			results <- r
		}()
		value, err := call()
		r = result{value, err}
	}()
	if u.place != nil {
		u.place.Leave()
		defer u.place.Return()
	}
	select {
	case r := <-results:
		return r.value, r.err
	case <-u.ctx.Done():
		var none T
		return none, fmt.Errorf("%s: %w", what, context.Cause(u.ctx))
	}
}
