//go:build linux && abi

package uabi

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unknown are the structs and fields that Debian's headers do not know yet: those of 2025, and
// names that the kernel has changed.
var unknown = []string{
	"rdma_ucm_ib_service", "rdma_ucm_resolve_ib_service", "rdma_ucm_write_cm_event", "rdma_ucm_query_ib_service_resp",
	"ib_user_service_rec", "rdma_ucm_event_resp.param.arg32",
}

// notHeaders are the structs that no kernel header has: they are libraries', or on the wire.
var notHeaders = []string{"__kernel_sockaddr_storage", "sockaddr_ib", "sockaddr_in", "sockaddr_in6", "ibv_path_record", "cma_hdr"}

// TestHeaders compares the layout with that of a C compiler and the kernel's headers (tag abi: it
// needs gcc and linux-libc-dev).
func TestHeaders(t *testing.T) {
	text, err := os.ReadFile("ucm-abi.json")
	if err != nil {
		t.Fatal(err)
	}
	var structs map[string]struct {
		Size   int               `json:"size"`
		Fields map[string][2]int `json:"fields"`
	}
	if err := json.Unmarshal(text, &structs); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for name, l := range structs {
		if slices.Contains(unknown, name) || slices.Contains(notHeaders, name) {
			continue
		}
		var c strings.Builder
		fmt.Fprintf(&c, "_Static_assert(sizeof(struct %s) == %d, \"size of %s\");\n", name, l.Size, name)
		for f, at := range l.Fields {
			if slices.Contains(unknown, name+"."+f) {
				continue
			}
			checked++
			fmt.Fprintf(&c, "_Static_assert(__builtin_offsetof(struct %s, %s) == %d, \"%s.%s\");\n", name, f, at[0], name, f)
			if at[1] > 0 {
				fmt.Fprintf(&c, "_Static_assert(sizeof(((struct %s *)0)->%s) == %d, \"size of %s.%s\");\n", name, f, at[1], name, f)
			}
		}
		if out, err := compile(t, c.String()); err != nil {
			t.Errorf("struct %s: %v\n%s", name, err, out)
		}
	}
	if checked < 100 {
		t.Errorf("%d fields were checked", checked)
	}
	for _, name := range unknown {
		s, f, _ := strings.Cut(name, ".")
		probe := fmt.Sprintf("int n = sizeof(struct %s);\n", s)
		if f != "" {
			probe = fmt.Sprintf("int n = __builtin_offsetof(struct %s, %s);\n", s, f)
		}
		if _, err := compile(t, probe); err == nil {
			t.Errorf("the headers know %s by now: take it off the list", name)
		}
	}
}

func compile(t *testing.T, text string) (out []byte, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "layout.c")
	if err := os.WriteFile(file, []byte("#include <rdma/rdma_user_cm.h>\n#include <rdma/ib_user_sa.h>\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return exec.Command("gcc", "-fsyntax-only", file).CombinedOutput()
}
