// Package bench measures Parley from outside: the CPU cost of a call, the response time that
// callers hear, and Parley's share of that time. It plays the other end of the calls itself and
// shares no code with the measured side.
package bench
