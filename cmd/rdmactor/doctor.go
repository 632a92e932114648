package main

import (
	"context"
	"io"

	"github.com/rdmactor/rdmactor/internal/doctor"
)

// runDoctor examines this machine's devices. This program is linked without libibverbs.
func runDoctor(ctx context.Context, args []string, stdout io.Writer) error {
	return doctor.Command(ctx, doctor.Config{Name: "rdmactor doctor"}, args, stdout)
}
