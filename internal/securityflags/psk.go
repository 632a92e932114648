package securityflags

import (
	"context"
	"fmt"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
)

// psk is Open for pre-shared keys.
func (f *Flags) psk(note func(string)) (*rdma.Security, func(), error) {
	keys := new(rdma.Keyring)
	list, err := keyfile.Load(f.Key)
	if err == nil {
		err = keyfile.Use(keys, list)
		clear(list)
	}
	if err != nil {
		return nil, func() {}, fmt.Errorf("--key: %w", err)
	}
	stop := background(func(ctx context.Context) { followKeys(ctx, f.Key, keys, note) })
	return &rdma.Security{Mode: rdma.PSK, Keys: keys}, stop, nil
}

// followKeys keeps keys equal to those of the file until ctx ends.
func followKeys(ctx context.Context, name string, keys *rdma.Keyring, note func(string)) {
	begun := false // the first time, the contents are those that psk has read, or newer
	keyfile.Follow(ctx, name, every, func(list []rdma.Credential, err error) {
		if err == nil {
			err = keyfile.Use(keys, list)
		}
		switch {
		case err != nil:
			note(fmt.Sprintf("the keys stay as they are: %v", err))
		case begun:
			note(fmt.Sprintf("%s has changed: connecting with the key of %s; keys of peers: %d", name, list[0].Identity, len(list)))
		}
		begun = true
	})
}
