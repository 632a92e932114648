package main

import (
	"bytes"
	"os"
	"testing"
)

// TestReproducible: the files are what go generate writes now.
func TestReproducible(t *testing.T) {
	files, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the oracles say: run go generate ./cmid/ucm/uabi", name)
		}
	}
}
