// Package simulation tests whole conversations in virtual time. Random callers talk with an
// agent whose providers fail at random. A judge that gets only the audio of both directions and
// the history looks for faults.
package simulation
