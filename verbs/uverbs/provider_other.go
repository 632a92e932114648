//go:build !linux

package uverbs

import (
	"fmt"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// Provider opens rxe and siw devices, which Linux has.
type Provider struct{}

// Open fails with verbs.ErrNotSupported.
func (Provider) Open(_ *eventloop.Loop, id verbs.DeviceIdent) (verbs.ProviderDevice, error) {
	return nil, fmt.Errorf("uverbs: %s: %w", id.Name, verbs.ErrNotSupported)
}
