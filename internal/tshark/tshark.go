// Package tshark has Wireshark's dissectors read a capture, for tests with the tag tshark. It needs
// Debian's package tshark (4.0 or later).
package tshark

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Report is tshark's analysis of a capture.
type Report struct {
	Packets     int
	FPDUs       int
	GoodCRCs    int            // of FPDUs
	Opcodes     map[string]int // FPDUs by RDMAP's name for their message, such as "Write"
	Frames      int            // MPA Requests and Replies
	Connections int
	// Complaints are malformed packets, wrong checksums, remarks of TCP's analysis, warnings and
	// errors.
	Complaints []string
}

// accepted are warnings about intended properties.
var accepted = []string{
	"as required by RFC 5044",          // revision 2 is RFC 6581's, which tshark 4.0 does not know
	"Connection reset (RST)",           // it was
	"same ports as an earlier session", // they were
}

// common are the arguments of each run. iWARP is recognized by its bytes, which has to come before
// the protocols that have one of the ports that tests get. The protocols that are off guess by the
// bytes of a message whether it is theirs.
var common = []string{
	"-n", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE", "-o", "tcp.try_heuristic_first:TRUE",
	"--disable-protocol", "rpcordma", "--disable-protocol", "smb_direct",
}

// Read runs tshark on the file of that name.
func Read(name string) (r Report, err error) {
	text, err := runTshark(name, "-O", "iwarp_mpa,iwarp_ddp_rdmap")
	if err != nil {
		return r, err
	}
	r.Opcodes = make(map[string]int)
	for line := range strings.Lines(text) {
		_, opcode, isOpcode := strings.Cut(line, "= OpCode: ")
		switch {
		case isOpcode:
			name, _, _ := strings.Cut(opcode, " (")
			r.Opcodes[name]++
		case strings.Contains(line, "ULPDU length: "):
			r.FPDUs++
		case strings.Contains(line, "(Good CRC32)"):
			r.GoodCRCs++
		case strings.Contains(line, "Request frame header"), strings.Contains(line, "Reply frame header"):
			r.Frames++
		case strings.HasPrefix(line, "Frame "):
			r.Packets++
		}
	}
	return r, r.collectComplaints(name)
}

// severe is the least severity of a remark that is a complaint: PI_WARN.
const severe = 0x600000

// collectComplaints collects tshark's complaints.
func (r *Report) collectComplaints(name string) error {
	fields := []string{
		"frame.number", "tcp.stream", "tcp.analysis.flags", "_ws.malformed", "tcp.checksum.status", "ip.checksum.status",
		"_ws.expert.severity", "_ws.expert.message",
	}
	args := []string{"-T", "fields", "-E", "separator=/t", "-E", "aggregator=;"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	text, err := runTshark(name, args...)
	if err != nil {
		return err
	}
	streams := make(map[string]bool)
	for line := range strings.Lines(text) {
		v := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(v) != len(fields) {
			return fmt.Errorf("tshark: %d fields in %q", len(v), line)
		}
		streams[v[1]] = true
		complain := func(what string) { r.Complaints = append(r.Complaints, "packet "+v[0]+": "+what) }
		if v[2] != "" && !isAccepted(v[7]) {
			complain("TCP analysis: " + v[7])
		}
		if v[3] != "" {
			complain("malformed: " + v[7])
		}
		if v[4] != "1" || v[5] != "1" && v[5] != "" { // IPv6 has none
			complain("checksums: TCP " + v[4] + ", IP " + v[5])
		}
		severities, messages := strings.Split(v[6], ";"), strings.Split(v[7], ";")
		for i, s := range severities {
			var severity int
			if _, err := fmt.Sscan(s, &severity); err == nil && severity >= severe && !isAccepted(messages[min(i, len(messages)-1)]) {
				complain(messages[min(i, len(messages)-1)])
			}
		}
	}
	r.Connections = len(streams)
	return nil
}

func isAccepted(message string) bool {
	for _, a := range accepted {
		if strings.Contains(message, a) {
			return true
		}
	}
	return false
}

func runTshark(name string, args ...string) (string, error) {
	cmd := exec.Command("tshark", append(append([]string{"-r", name}, common...), args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("%w; install it: apt-get install tshark", err)
	case err != nil:
		return "", fmt.Errorf("%s: %w: %s", cmd, err, errs.Bytes())
	}
	return out.String(), nil
}
