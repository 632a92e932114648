package main

import (
	"encoding/json"
	"net/netip"
	"os"
)

// plan is the task of a process of a test run. The command starts one process for each suite, so
// that a crash loses neither the others nor the report.
type plan struct {
	Suite   string // "TestConformance"
	Pattern string // groups to run, as in go test -run; "": all
	Device  string
	Driver  string // the kernel's: "mlx5"
	Release string // of the kernel
	Library bool   // libibverbs opens rxe and siw, too
	IWARP   bool
	Atomics bool
	// Address is the device's, Second another one of it, Other another device's, and Plain one
	// without a device. The latter three are optional.
	Address, Second, Other, Plain netip.Addr
}

// planned is the environment variable that contains the plan.
const planned = "RDMACTOR_ADAPTER_PLAN"

// environWithPlan returns this process's environment, with the plan.
func (p *plan) environWithPlan() ([]string, error) {
	text, err := json.Marshal(p)
	return append(os.Environ(), planned+"="+string(text)), err
}
