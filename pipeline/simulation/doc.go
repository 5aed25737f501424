// Package simulation holds whole conversations in virtual time, thousands of
// them, to what was audible: its tests let random callers talk with an agent
// whose providers break at random, and a judge that knows the sound of both
// ways and the history alone looks for what must not happen.
package simulation
