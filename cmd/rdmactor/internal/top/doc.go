// Package top shows the live page of a running program (package inspect) in a terminal, or once, as
// text.
//
// Texts from the page may come from peers. They contain no byte that a terminal would interpret
// (package plain), and their number and length are limited.
package top
