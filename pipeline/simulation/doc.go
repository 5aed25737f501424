// Package simulation tests whole conversations in virtual time. Random callers talk with an agent whose providers
// fail at random. A judge looks for faults. It has only the audio of both directions, the requests to the model, and
// the outcome of the call.
package simulation
