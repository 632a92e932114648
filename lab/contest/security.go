package contest

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/devcerts"
	"github.com/rdmactor/rdmactor/lab/measure"
)

// cryptoTLS is the contestant with crypto/tls over net.Conn.
const cryptoTLS = "crypto/tls"

// keysVariable is the environment variable with the keys, as JSON.
const keysVariable = "CONTEST_KEYS"

// keys are those of both sides of secured connections. They differ from run to run.
type keys struct {
	PSK       [32]byte
	Authority []byte        // the authority's certificate
	Pair      devcerts.Pair // of both sides
}

// MakeKeys makes the keys of secured connections, for this process and the children that it starts
// from now on.
func MakeKeys() error {
	_, err := ownKeys()
	return err
}

// ownKeys returns the keys with which this process was started. If there are none, it makes them.
var ownKeys = sync.OnceValues(func() (*keys, error) {
	k := new(keys)
	if text, ok := os.LookupEnv(keysVariable); ok {
		return k, json.Unmarshal([]byte(text), k)
	}
	_, _ = rand.Read(k.PSK[:]) // never fails: it ends the program instead
	a, err := devcerts.New()
	if err != nil {
		return nil, err
	}
	k.Authority = a.Pair.Cert
	if k.Pair, err = a.Server("127.0.0.1"); err != nil {
		return nil, err
	}
	text, err := json.Marshal(k)
	return k, errors.Join(err, os.Setenv(keysVariable, string(text)))
})

// tlsConfig returns the configuration of both sides, the same for each connection: each side shows
// its certificate, and requires the other's. No session is resumed.
var tlsConfig = sync.OnceValues(func() (*tls.Config, error) {
	k, err := ownKeys()
	if err != nil {
		return nil, err
	}
	own, err := tls.X509KeyPair(k.Pair.Cert, k.Pair.Key)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(k.Authority) {
		return nil, errors.New("the authority has no certificate")
	}
	return &tls.Config{
		Certificates: []tls.Certificate{own}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, ServerName: "127.0.0.1",
	}, nil
})

// securityOf returns the security of the entry's connections.
func securityOf(e measure.Entry) (*rdma.Security, error) {
	switch e.Secured {
	case "":
		return &rdma.Security{Mode: rdma.Insecure}, nil
	case "PSK":
		k, err := ownKeys()
		if err != nil {
			return nil, err
		}
		ring, who := new(rdma.Keyring), rdma.Credential{Identity: "bench", Key: k.PSK}
		return &rdma.Security{Mode: rdma.PSK, Keys: ring}, errors.Join(ring.Use(who), ring.Accept(who))
	case "TLS":
		config, err := tlsConfig()
		return &rdma.Security{Mode: rdma.TLS, TLS: config}, err
	}
	return nil, fmt.Errorf("no mode %q", e.Secured)
}

// EachMode returns each entry, followed by a copy for each mode of secured connections.
func EachMode(entries []measure.Entry) (list []measure.Entry) {
	for _, e := range entries {
		for _, mode := range []string{"", "PSK", "TLS"} {
			e.Secured = mode
			list = append(list, e)
		}
	}
	return list
}
