package actor

import (
	"fmt"

	"github.com/rdmactor/rdmactor/actor/internal/secure"
)

// UseFor has c be what this side connects with from now on to who is dialled as name (Dial.Name, or
// Dial.Addr), in place of Use's. Where nodes connect to each other, each two need a key of their
// own: whoever has a node's only key, because the node connects to it, can pass for that node
// everywhere else. A name stays until Forget. An error is EINVAL's.
func (k *Keyring) UseFor(name string, c Credential) error {
	if _, err := secure.NewKeys(c); err != nil {
		return fmt.Errorf("rdma: %w", err)
	}
	k.named.Store(name, &c)
	return nil
}

// Forget ends what UseFor has begun: who is dialled as name gets Use's key.
func (k *Keyring) Forget(name string) { k.named.Delete(name) }

// toward is what this side connects with to who is dialled so; nil: there is nothing.
func (k *Keyring) toward(name string) *secure.Credential {
	if c, ok := k.named.Load(name); ok {
		return c.(*secure.Credential)
	}
	return k.own.Load()
}
