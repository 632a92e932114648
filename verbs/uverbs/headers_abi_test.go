//go:build linux && abi

package uverbs

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "write "+oracle+" anew from the installed headers")

// TestOracleIsTheHeaders compiles a program against the installed headers (linux-libc-dev) and
// compares the oracle with its output.
func TestOracleIsTheHeaders(t *testing.T) {
	asked := slices.Sorted(maps.Keys(mirrored()))
	var c bytes.Buffer
	c.WriteString("#include <stdio.h>\n#include <stddef.h>\n#include <rdma/ib_user_verbs.h>\n#include <rdma/rdma_user_rxe.h>\n" +
		"#include <rdma/siw-abi.h>\nint main(void)\n{\n\tputs(\"{\");\n")
	for i, e := range asked {
		comma := ","
		if i == len(asked)-1 {
			comma = ""
		}
		fmt.Fprintf(&c, "\tprintf(\"\\t\\\"%s\\\": %%ld%s\\n\", (long)(%s));\n", e, comma, e)
	}
	c.WriteString("\tputs(\"}\");\n\treturn 0;\n}\n")
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "abi.c"), filepath.Join(dir, "abi")
	if err := os.WriteFile(src, c.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-o", bin, src).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	got, err := exec.Command(bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(oracle, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(oracle)
	if err != nil {
		t.Fatal(err)
	}
	var a, b map[string]int64
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want, &b); err != nil {
		t.Fatal(err)
	}
	for e := range a {
		if a[e] != b[e] {
			t.Errorf("%s is %d in the installed headers and %d in the oracle", e, a[e], b[e])
		}
	}
	if len(a) != len(b) {
		t.Errorf("the oracle has %d answers, the headers give %d", len(b), len(a))
	}
}
