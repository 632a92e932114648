// Package page reads the pages of package inspect that other programs serve. What such a program
// says is not trusted: an answer is read up to a bound and within a time, and has at most as many
// rows as were asked for. Its texts are as it has sent them: package plain prints them.
package page
