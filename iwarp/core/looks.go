package core

import "bytes"

// looks names what b begins, in brackets, where that is a protocol that often meets the wrong port.
func looks(b []byte) string {
	for _, p := range [...]struct{ prefix, name string }{
		{"GET ", "HTTP"},
		{"HEAD ", "HTTP"},
		{"POST ", "HTTP"},
		{"PUT ", "HTTP"},
		{"DELETE ", "HTTP"},
		{"OPTIONS ", "HTTP"},
		{"CONNECT ", "HTTP"},
		{"PRI * HTTP", "HTTP/2"},
		{"HTTP/", "HTTP"},
		{"\x16\x03", "TLS"},
		{"SSH-", "SSH"},
		{"PROXY ", "a proxy"},
		{"\r\n\r\n\x00\r\nQUIT\n", "a proxy"},
	} {
		if bytes.HasPrefix(b, []byte(p.prefix)) {
			return " (" + p.name + ")"
		}
	}
	return ""
}
