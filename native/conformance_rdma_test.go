//go:build linux && rdma

package native

import (
	"testing"

	"github.com/rdmactor/rdmactor/cmid/ucm"
	"github.com/rdmactor/rdmactor/internal/conformance"
	"github.com/rdmactor/rdmactor/internal/kernelrig"
)

// TestConformance runs the suite on queue pairs that libibverbs has made.
func TestConformance(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Rig {
		return kernelrig.Rig(t, ucm.New(ucm.Config{Provider: Provider{}}))
	})
}
