// Package top shows a page of package inspect in a terminal, again and again. What is shown and
// what keys do is pure (model, lines); terminal and run have the side effects.
//
// # Ownership
//
// One goroutine, Run's, has the model. Others read keys, write frames and ask the page, and give it
// what they have got through channels. A terminal that takes nothing gets the newest frame when it
// takes something again, and delays nothing else.
package top
