//go:build !linux || (!amd64 && !arm64)

package native

import (
	"fmt"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
)

// Open fails with verbs.ErrNotSupported.
func (Provider) Open(_ *eventloop.Loop, id verbs.DeviceIdent) (verbs.ProviderDevice, error) {
	return nil, fmt.Errorf("native: %s: %w", id.Name, verbs.ErrNotSupported)
}
