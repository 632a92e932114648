package main

import (
	"encoding/json"
	"net/netip"
	"os"
)

// plan is what a process of a test run is to do. The command starts one for each suite, so that
// none takes the others, or the report, with it.
type plan struct {
	Suite   string // "TestConformance"
	Pattern string // which groups of it, as in go test -run; "": all
	Device  string
	Driver  string // the kernel's: "mlx5"
	Release string // of the kernel
	Library bool   // libibverbs opens rxe and siw, too
	IWARP   bool
	Atomics bool
	// Address is the device's, Second another one of it, Other another device's, and Plain one
	// without a device. The latter three need not be there.
	Address, Second, Other, Plain netip.Addr
}

// planned is the environment variable that has the plan.
const planned = "RDMACTOR_ADAPTER_PLAN"

// environment is this process's, with the plan.
func (p *plan) environment() ([]string, error) {
	text, err := json.Marshal(p)
	return append(os.Environ(), planned+"="+string(text)), err
}
