// Package bench measures Parley from outside: what a call costs on the wire,
// how long the caller waits for an answer, and what of that is ours. It plays
// the far end itself and never looks inside.
package bench
