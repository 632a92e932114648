//go:build amd64 || arm64

package native

import (
	"fmt"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
	"github.com/rdmactor/rdmactor/verbs/uverbs"
)

// Open opens a device through libibverbs. The error is a *LibraryError if the library or its driver
// for the device is missing, and a *CallError if a call of the library fails.
func (Provider) Open(l *eventloop.Loop, id verbs.DeviceIdent) (verbs.ProviderDevice, error) {
	lib, err := libibverbs()
	if err != nil {
		return nil, fmt.Errorf("native: %s: %w", id.Name, err)
	}
	a, err := openAdapter(lib, id.Name)
	if err != nil {
		return nil, fmt.Errorf("native: %s: %w", id.Name, err)
	}
	return uverbs.Over(l, id, a)
}
