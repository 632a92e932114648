//go:build !linux || (!amd64 && !arm64)

package native

import (
	"fmt"

	"github.com/rdmactor/rdmactor/verbs"
)

// Installed fails with verbs.ErrNotSupported.
func Installed() (Library, error) {
	return Library{}, fmt.Errorf("native: libibverbs is called on Linux, on amd64 and arm64: %w", verbs.ErrNotSupported)
}
