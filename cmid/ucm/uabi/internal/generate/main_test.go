package main

import (
	"bytes"
	"os"
	"testing"
)

// TestReproducible: types.go is what go generate writes now.
func TestReproducible(t *testing.T) {
	want, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../types.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("types.go is not what the oracles say: run go generate ./cmid/ucm/uabi")
	}
}
