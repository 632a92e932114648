package secure

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
)

// ALPN is the protocol that both sides name.
const ALPN = "rdmactor/1"

// prepared is the user's configuration as this package uses it: TLS 1.3, our protocol, no sessions
// to resume, and the user's code where it can do no harm.
func prepared(ctx context.Context, c *tls.Config) (*tls.Config, error) {
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
	contain(ctx, c)
	return c, nil
}

// contain has the user's code run on goroutines of its own: it may panic, call runtime.Goexit, or
// not return. c is our copy.
func contain(ctx context.Context, c *tls.Config) {
	if get := c.GetCertificate; get != nil {
		c.GetCertificate = func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return guard(ctx, "GetCertificate", func() (*tls.Certificate, error) { return contained(ctx)(get(h)) })
		}
	}
	if get := c.GetClientCertificate; get != nil {
		c.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return guard(ctx, "GetClientCertificate", func() (*tls.Certificate, error) { return contained(ctx)(get(r)) })
		}
	}
	if get := c.GetConfigForClient; get != nil {
		c.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			other, err := guard(ctx, "GetConfigForClient", func() (*tls.Config, error) { return get(h) })
			if other == nil || err != nil {
				return nil, err
			}
			return prepared(ctx, other)
		}
	}
	if verify := c.VerifyPeerCertificate; verify != nil {
		c.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) error {
			_, err := guard(ctx, "VerifyPeerCertificate", func() (any, error) { return nil, verify(raw, chains) })
			return err
		}
	}
	if verify := c.VerifyConnection; verify != nil {
		c.VerifyConnection = func(s tls.ConnectionState) error {
			_, err := guard(ctx, "VerifyConnection", func() (any, error) { return nil, verify(s) })
			return err
		}
	}
	list := make([]tls.Certificate, len(c.Certificates))
	for i := range list {
		list[i] = withSigner(ctx, c.Certificates[i])
	}
	c.Certificates = list
}

// contained does the same to a certificate that the user's code has returned.
func contained(ctx context.Context) func(*tls.Certificate, error) (*tls.Certificate, error) {
	return func(c *tls.Certificate, err error) (*tls.Certificate, error) {
		if c == nil || err != nil {
			return nil, err
		}
		safe := withSigner(ctx, *c)
		return &safe, nil
	}
}

// signer is a private key of the user's own kind: one in a device, or elsewhere.
type signer struct {
	crypto.Signer
	ctx context.Context
}

func (s signer) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return guard(s.ctx, "the private key", func() ([]byte, error) { return s.Signer.Sign(random, digest, opts) })
}

// messageSigner is one that is given the message instead of its hash.
type messageSigner struct {
	signer
	key crypto.MessageSigner
}

func (s messageSigner) SignMessage(random io.Reader, message []byte, opts crypto.SignerOpts) ([]byte, error) {
	return guard(s.ctx, "the private key", func() ([]byte, error) { return s.key.SignMessage(random, message, opts) })
}

func withSigner(ctx context.Context, c tls.Certificate) tls.Certificate {
	switch key := c.PrivateKey.(type) {
	case crypto.MessageSigner:
		c.PrivateKey = messageSigner{signer{key, ctx}, key}
	case crypto.Signer:
		c.PrivateKey = signer{key, ctx}
	}
	return c
}

// guard calls the user's code. What it panics with is an error, and so is its not returning before
// ctx is done. Then it is left behind on its goroutine.
func guard[T any](ctx context.Context, what string, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		r := result{err: fmt.Errorf("%s has not returned", what)} // after runtime.Goexit
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("%s has panicked: %v", what, p)
			}
			results <- r
		}()
		value, err := call()
		r = result{value, err}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
}
