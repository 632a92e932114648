package vmtest

import (
	"context"
	"flag"
	"strings"

	"github.com/rdmactor/rdmactor/lab/vm"
)

// These flags make the tests of a package run in another way:
//
//	go test -tags vm ./lab/vm/faulttest -args -libibverbs -cgo -goflags=-race
var (
	libibverbs = flag.Bool("libibverbs", false, "what runs in the machine drives rxe and siw through libibverbs (module native)")
	cgo        = flag.Bool("cgo", false, "what runs in the machine is built with cgo")
	goFlags    = flag.String("goflags", "", "`FLAGS` of go build for what runs in the machine, such as -race with -cgo")
)

// Compile compiles a package for the guest, with the flags' options. command is "build" or "test
// -c".
func Compile(ctx context.Context, command, pkg string) (string, error) {
	c := vm.Compiler{Libibverbs: *libibverbs, Cgo: *cgo, Flags: strings.Fields(*goFlags)}
	return c.Compile(ctx, command, pkg)
}
