//go:build linux && rdma

package ucm_test

import (
	"testing"

	"github.com/rdmactor/rdmactor/cmid/ucm"
	"github.com/rdmactor/rdmactor/internal/conformance"
	"github.com/rdmactor/rdmactor/internal/kernelrig"
)

var (
	env       = kernelrig.Env
	addr      = kernelrig.Addr
	rdma      = kernelrig.RDMA
	startRDMA = kernelrig.StartRDMA
)

func driver() *ucm.Driver { return ucm.New() }

func TestConformance(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Rig { return kernelrig.Rig(t, driver()) })
}
