package actor

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
)

// Credential is an identity and a key of it: Identity, a string, and Key, an array of 32 bytes. It
// prints as the identity.
type Credential = secure.Credential

// Keyring has the keys of PSK mode: one to connect with, and those of peers that may connect. Both
// may change while there are connections: these stay, and later ones use the new keys. A peer whose
// key is removed before its connection is accepted gets none. So a key is replaced in three steps:
// its listeners accept two keys of the identity, then the connecting side uses the new one, then
// the listeners accept only that. The zero Keyring has none. Any goroutine may use it.
type Keyring struct {
	own   atomic.Pointer[secure.Credential]
	named sync.Map // of *secure.Credential, by the name of the peer that has the key, too
	peers atomic.Pointer[secure.Keys]
}

// Use sets the credential for future connections. An error is EINVAL's.
func (k *Keyring) Use(c Credential) error {
	if _, err := secure.NewKeys(c); err != nil {
		return fmt.Errorf("rdma: %w", err)
	}
	k.own.Store(&c)
	return nil
}

// UseFor sets the credential for future connections to name (Dial.Name, or Dial.Addr). It overrides
// Use. If nodes connect to each other, each pair needs a separate key: a peer that has a node's
// only key, because the node connects to it, can impersonate that node everywhere else. A name
// stays until Forget. An error is EINVAL's.
func (k *Keyring) UseFor(name string, c Credential) error {
	if _, err := secure.NewKeys(c); err != nil {
		return fmt.Errorf("rdma: %w", err)
	}
	k.named.Store(name, &c)
	return nil
}

// Forget reverts UseFor: future connections to name use Use's credential.
func (k *Keyring) Forget(name string) { k.named.Delete(name) }

// credentialFor returns the credential for connections to name; nil: there is none.
func (k *Keyring) credentialFor(name string) *secure.Credential {
	if c, ok := k.named.Load(name); ok {
		return c.(*secure.Credential)
	}
	return k.own.Load()
}

// Accept sets the credentials of the peers that may connect, in place of earlier ones. An identity
// may have two keys, but two identities may not have the same one. Errors are EINVAL's.
func (k *Keyring) Accept(list ...Credential) error {
	keys, err := secure.NewKeys(list...)
	if err != nil {
		return fmt.Errorf("rdma: %w", err)
	}
	k.peers.Store(keys)
	return nil
}

// peerKeys returns the keys of the peers that may connect.
func (k *Keyring) peerKeys() *secure.Keys {
	if keys := k.peers.Load(); keys != nil {
		return keys
	}
	return new(secure.Keys)
}
