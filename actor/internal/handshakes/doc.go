// Package handshakes computes the handshakes of secured connections off the loop: a bound number at
// a time, step by step. It takes and gives bytes, and knows no identifiers and no connections. What
// the bytes are is package secure's.
package handshakes
