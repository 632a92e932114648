// Package top shows a page of package inspect in a terminal and refreshes it. The content of the
// screen and the effect of keys are pure (model, lines); terminal and run have the side effects.
//
// # Ownership
//
// Run's goroutine owns the model. Others read keys, write frames and query the page, and send the
// results through channels. A terminal that stops reading gets the newest frame when it reads
// again, and delays nothing else.
package top
