// Package handshakes computes the handshakes of secured connections off the loop: a bound number at
// a time, step by step. It passes bytes in and out, and knows no identifiers and no connections.
// Package secure interprets the bytes.
package handshakes
