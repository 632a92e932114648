package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"
)

// TestFlagsLikeGetopt: the spellings of flags that rping accepts.
func TestFlagsLikeGetopt(t *testing.T) {
	want := pingFlags{
		where: where{client: true, addr: "10.0.0.1", port: "99", device: "auto", timeout: 10 * time.Second},
		count: 10, size: 100, verbose: true, validate: true,
	}
	for _, line := range []string{
		"-c -a 10.0.0.1 -p 99 -C 10 -S 100 -v -V",
		"-cvV -a 10.0.0.1 -p 99 -C 10 -S 100",
		"-cvVC10 -a10.0.0.1 -p99 -S100",
		"-cvVC10 -a 10.0.0.1:99 -S100",
		"-cvVC10 -a 10.0.0.1:99 -p 99 -S100",
		"-cvVC 10 -a 10.0.0.1 -p=99 --S=100 --timeout 10s",
	} {
		got, err := parsePing(strings.Fields(line), io.Discard)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", line, got, err, want)
		}
	}
}

func TestBadCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"":                             "rdmactor help",
		"help pong":                    `unknown command "pong"`,
		"list":                         "rdmactor list HOST[:PORT]",
		"call localhost":               "rdmactor list localhost",
		"pong":                         `unknown command "pong"`,
		"ping":                         "server or client?",
		"ping -s -c":                   "server or client?",
		"ping -c":                      "connect to whom?",
		"ping -cP -a 127.0.0.1":        "-P",
		"ping -s now":                  `unexpected "now"`,
		"ping -sx":                     "-x",
		"ping -s -S 0":                 "-S 0",
		"ping -s -C -1":                "-C -1",
		"ping -s --timeout 0s":         "--timeout",
		"top":                          "whose page?",
		"top a b":                      `unexpected "b"`,
		"top ftp://a":                  "want an http or https URL",
		"top a --rows 501":             "--rows 501: want 1 to 500",
		"top a --sing":                 "-sing",
		"ids a b":                      `unexpected "b"`,
		"ids --kernel":                 "rdmactor ids URL --kernel",
		"ids a --pid 7":                "--pid is for the kernel's table",
		"ids --pid 4294967296":         "there is no such process",
		"ids --state idle":             "--state is for a program's",
		"ids a --kernel --state idle":  "--state and --kernel",
		"ids --sort size":              "want one of ifname",
		"ping -s --device rxe0":        "--device rxe0: want auto, iwarp or kernel",
		"ping -s -I 127.0.0.1":         "-I: a client's address",
		"ping -c -a ::1 -I here":       "-I",
		"ping -c -a 1.2.3.4:5 -p 6":    "-a 1.2.3.4:5 -p 6: which port?",
		"ping -c -a ::1:x":             "one with a port is written [IPV6]:PORT",
		"ping -c -a ::1 -p 0":          "port 0: nobody can be reached there",
		"ping -s -a [::1]:99999":       "ports are 0 to 65535",
		"perf -c -a ::1 -p 65536":      "ports are 0 to 65535",
		"perf -c -a 1.2.3.4:0":         "port 0: nobody can be reached there",
		"time -c -a 1.2.3.4:0":         "port 0: nobody can be reached there",
		"time -a 1.2.3.4:99999":        "ports are 0 to 65535",
		"ping -c -a 127.0.0.1 -p none": "none",
		"time -s -c":                   "-s and -c",
		"time -c":                      "connect to whom?",
		"time now":                     `unexpected "now"`,
		"time -s --json":               "the client measures",
		"time -I 127.0.0.1":            "-I: only a client",
		"time -n 1,,2":                 `"": want numbers from 1 to 50000`,
		"time -n 0":                    `"0": want numbers`,
		"time -n 50001":                `"50001": want numbers`,
		"time --ids 50001":             `"50001": want a number from 0 to 50000`,
		"time --ids -1":                `"-1": want a number from 0`,
		"time --timeout 0s":            "--timeout 0s: too short",
		"time --device siw0":           "--device siw0: want auto, iwarp or kernel",
		"time --device iwarp -a ::":    "-a ::: both sides of a connection need an address",
		"perf":                         "server or client?",
		"perf -s -c":                   "server or client?",
		"perf -c":                      "connect to whom?",
		"perf -s now":                  `unexpected "now"`,
		"perf -s --op send":            "-op: the client measures",
		"perf -s -I 127.0.0.1":         "-I: the client measures",
		"perf -c -a ::1 --op sing":     `no operation "sing"`,
		"perf -c -a ::1 --sizes 0":     `"0": want 1 to`,
		"perf -c -a ::1 --sizes 4:1":   `"4:1": from less to more`,
		"perf -c -a ::1 --sizes 1:9G":  `"9G": want 1 to`,
		"perf -c -a ::1 --depth 4097":  "depth 4097: want 1 to 4096",
		"perf -c -a ::1 --depth -1":    "--depth -1",
		"perf -c -a ::1 --count -1":    "--count -1",
		"perf -c -a ::1 --warmup=-1s":  "--warmup -1s",
		"perf -c -a ::1 --duration 0s": "--duration 0s: too short",
		"perf -s --timeout 0s":         "--timeout 0s: too short",
		"perf -s --wait long":          "--wait long: want block, spin or busy",
		"perf -s --tos 256":            "--tos 256: want at most 255",
		"perf -s --tos -1":             "-tos",
		"perf -s --qp-timeout 32":      "--qp-timeout 32: want 1 to 31",
		"perf -s --retry-count 7":      "--retry-count 7: want 1 to 6",
		"keygen":                       "whose key?",
		"keygen ann bob":               `unexpected "bob"`,
		"keygen ann --print":           "-print",
		"keygen a/b":                   "name one with -o FILE",
		"keygen ann -o - --add":        "to which file?",
		"keygen # -o -":                "does not begin with #",
		"certs --client ca":            "neither ca nor server",
		"certs --client server":        "neither ca nor server",
		"certs --client a/b":           "letters, digits",
		"certs --client ../a":          "letters, digits",
		"certs --client a-key":         "letters, digits",
		"certs host:7471":              "without a port",
		"certs --days":                 "-days",
		"perf -s --device mlx5":        "--device mlx5: want auto, iwarp or kernel",
	} {
		err := runCommand(context.Background(), strings.Fields(line), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rdmactor %s: %v, want an error that says %q", line, err, want)
		}
	}
}

func TestHelp(t *testing.T) {
	for line, want := range map[string]string{
		"--help": "neither\nauthenticate nor encrypt", "help": "rdmactor ping", "help help": "rdmactor ping", "help top": "--once", "ping --help": "-P", "ping -h": "-crc", "ping -help": "-crc",
		"top --help": "history", "ids -h": "rdma resource show cm_id",
		"time -h": "-ids", "time --help": "cmtime",
		"perf --help": "half of the round trip", "perf -h": "-sizes",
		"keygen --help": "Only the\nfile's owner", "keygen -h": "-add",
		"certs --help": "not for production", "certs -h": "-client", "list -h": "rpcreflect", "call -h": "--key", "bench -h": "--rate",
		"probe -h": "--alive", "doctor -h": "remedy", "help doctor": "GIDs",
	} {
		var out bytes.Buffer
		err := runCommand(context.Background(), strings.Fields(line), &out, io.Discard)
		if err != nil && !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), want) {
			t.Errorf("rdmactor %s: %v, prints %q, want %q in it", line, err, &out, want)
		}
		for l := range strings.Lines(out.String()) {
			if len(strings.TrimSuffix(l, "\n")) > 80 {
				t.Errorf("rdmactor %s: %d columns do not fit a terminal: %s", line, len(l)-1, l)
			}
		}
		if strings.Contains(out.String(), "default -1") {
			t.Errorf("rdmactor %s: prints %q, with a default that nobody can mean", line, &out)
		}
	}
}
