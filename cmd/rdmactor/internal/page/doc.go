// Package page reads the pages of package inspect that other programs serve. It does not trust such
// a program: an answer is read up to a size and time limit, and has at most as many rows as were
// requested. Its texts are returned unchanged: package plain prints them.
package page
