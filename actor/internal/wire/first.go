package wire

// Put makes a first message of a secured connection, header and body. body is at most MaxUserData
// bytes.
func (t Type) Put(body []byte) []byte {
	b := make([]byte, HeaderLen, HeaderLen+len(body))
	Header{Type: t}.Put(b)
	return append(b, body...)
}

// isFirst reports whether the message is one of those that a secured connection begins with.
func (t Type) isFirst() bool { return t >= TypeRequest && t <= TypeRefusal }

// ParseFirst takes apart the first message that a side of a secured connection sends. body is part
// of b. An error is a *ProtocolError.
func ParseFirst(b []byte) (t Type, body []byte, err error) {
	if len(b) < HeaderLen || len(b) > HeaderLen+MaxUserData {
		return 0, nil, newProtocolError("a first message of %d bytes", len(b))
	}
	if t = Type(b[0]); !t.isFirst() || !allZeros(b[1:HeaderLen]) {
		return 0, nil, newProtocolError("a first message with the header %x", b[:HeaderLen])
	}
	return t, b[HeaderLen:], nil
}
