package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/verbs"
	"github.com/rdmactor/rdmactor/verbs/uverbs"
)

// TestThisMachine: on any machine the report is complete, and the error is about this machine.
func TestThisMachine(t *testing.T) {
	for _, args := range [][]string{nil, {"--json"}} {
		var out bytes.Buffer
		err := Command(t.Context(), Config{Name: "x doctor"}, args, &out)
		if err != nil && !errors.Is(err, ErrUnusable) {
			t.Fatal(err)
		}
		if args == nil {
			if s := out.String(); !strings.HasPrefix(s, "x doctor ") || !strings.Contains(s, "linked without") || (err != nil) != strings.Contains(s, "What is missing") {
				t.Errorf("%v:\n%s", err, s)
			}
			continue
		}
		var r Report
		if e := json.Unmarshal(out.Bytes(), &r); e != nil || r.Usable != (err == nil) || r.Kernel == "" || r.Limits.OpenFiles == 0 {
			t.Errorf("%v, %v: %s", e, err, out.Bytes())
		}
	}
	if err := Command(t.Context(), Config{Name: "x"}, []string{"y"}, &bytes.Buffer{}); err == nil || errors.Is(err, ErrUnusable) {
		t.Errorf("an argument too many: %v", err)
	}
}

// failing is a provider whose devices cannot be opened.
type failing struct{ err error }

func (f failing) Open(*eventloop.Loop, verbs.DeviceIdent) (verbs.ProviderDevice, error) {
	return nil, f.err
}

// TestWaysOut: each reason why a device is not opened has its remedy.
func TestWaysOut(t *testing.T) {
	special := errors.New("special")
	for _, c := range []struct {
		err error
		way string
	}{
		{&uverbs.OtherDeviceError{Vendor: 0x2c9}, `import`},
		{&uverbs.MemlockError{Err: unix.ENOMEM}, "ulimit -l unlimited"},
		{&uverbs.CgroupError{Device: "mlx5_0", Resource: "hca_object", File: "/g/rdma.max", Err: unix.EAGAIN}, "echo mlx5_0 hca_object=max > /g/rdma.max"},
		{unix.EACCES, "permission"},
		{unix.ENOENT, "udev"},
		{unix.ENODEV, "modprobe ib_uverbs"},
		{unix.EIO, "dmesg"},
		{special, "do something special"},
	} {
		d := Device{Name: "mlx5_0"}
		cfg := Config{Provider: failing{fmt.Errorf("native: mlx5_0: %w", c.err)}, Remedy: func(err error) string {
			if errors.Is(err, special) {
				return "do something special"
			}
			return ""
		}}
		if err := openWithin(t.Context(), &d, cfg); err != nil {
			t.Fatal(err)
		}
		if d.Path != "" || !strings.Contains(d.Error, c.err.Error()) || !strings.Contains(d.Way, c.way) {
			t.Errorf("%+v, want %q", d, c.way)
		}
	}
}
