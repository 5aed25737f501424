// Package bench measures Parley from outside: the cost of a call on the wire, the
// response time callers hear, and Parley's share of it. It plays the far end
// itself and shares no code with the measured side.
package bench
