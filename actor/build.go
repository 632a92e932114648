package actor

// BuildSend makes a message of n bytes for the caller to fill in: p, which holds whatever it held before, is its memory until it is
// sent. It spares the copy that NewSend makes of a message that has to be encoded first. Any goroutine.
func BuildSend(n int) (s *Send, p []byte) {
	s = newSend(n)
	return s, s.out.Bytes()
}
